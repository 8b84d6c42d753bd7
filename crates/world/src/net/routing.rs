//! Routes as packets use them: computed once per pair into one arena, found by (from, to) in
//! constant time. A packet carries its place in the arena.

use crate::prefetch::prefetch;
use crate::topology::NodeIx;
use crate::topology::routes::Routes;

/// Ends each route in the arena.
const END: u32 = u32::MAX;

/// Marks a pair without a way, and an empty place of the table.
const NONE: u32 = u32::MAX;

/// Places of links, by pair of hosts.
#[derive(Debug)]
pub(crate) struct RouteTable {
    routes: Routes,
    /// Links in the order of travel, each route followed by `END`.
    arena: Vec<u32>,
    /// Open addressing over (from, to): a fixed mix of the bits, so the same in every run.
    table: Vec<(u64, u32)>,
    used: usize,
}

/// No pair of nodes has this key: node numbers are below `u32::MAX`.
const EMPTY: u64 = u64::MAX;

impl RouteTable {
    pub(crate) fn new(routes: Routes) -> RouteTable {
        RouteTable { routes, arena: vec![END], table: vec![(EMPTY, NONE); 16], used: 0 }
    }

    /// Where the route from `from` to `to` begins in the arena; `None` where there is no way.
    pub(crate) fn start(&mut self, from: NodeIx, to: NodeIx) -> Option<u32> {
        let key = u64::from(from.0) << 32 | u64::from(to.0);
        let place = self.place(key);
        let start = match self.table[place] {
            (EMPTY, _) => self.learn(from, to, key),
            (_, start) => start,
        };
        (start != NONE).then_some(start)
    }

    /// The link at a place of the arena; `None` behind a route's last.
    pub(crate) fn link(&self, hop: u32) -> Option<u32> {
        let link = self.arena[hop as usize];
        (link != END).then_some(link)
    }

    /// Asks for a place of the arena ahead of time.
    pub(crate) fn look_at(&self, hop: u32) {
        self.arena.get(hop as usize).into_iter().for_each(prefetch);
    }

    /// Where `key` is in the table, or would be.
    fn place(&self, key: u64) -> usize {
        let mask = self.table.len() - 1;
        let mixed = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut place = (mixed ^ (mixed >> 32)) as usize & mask;
        while self.table[place].0 != key && self.table[place].0 != EMPTY {
            place = (place + 1) & mask;
        }
        place
    }

    fn learn(&mut self, from: NodeIx, to: NodeIx, key: u64) -> u32 {
        let start = match self.routes.path(from, to) {
            None => NONE,
            Some(path) => {
                let start = self.arena.len() as u32;
                self.arena.extend(path.iter().map(|link| link.0));
                self.arena.push(END);
                start
            }
        };
        if self.used * 2 >= self.table.len() {
            let wider = vec![(EMPTY, NONE); self.table.len() * 2];
            let narrow = std::mem::replace(&mut self.table, wider);
            for entry in narrow.into_iter().filter(|entry| entry.0 != EMPTY) {
                let place = self.place(entry.0);
                self.table[place] = entry;
            }
        }
        let place = self.place(key);
        self.table[place] = (key, start);
        self.used += 1;
        start
    }
}
