//! How a content is completed and a group ends.

use super::{Actor, FAREWELL_WAIT, FLUSH_WAIT};
use crate::clock;
use crate::error::{ErrorKind, GroupError};
use crate::event::Event;
use crate::group::Inbound;
use crate::link::LinkEvent;
use crate::store::{FinishError, StorageError};
use anabranch_proto::overlay::{Command, Input};
use std::path::PathBuf;

impl Actor {
    pub(super) fn flush(&mut self) {
        (self.unflushed, self.flushing) = (false, true);
        let (store, inbox) = (self.store.clone(), self.shared.inbox.clone());
        tokio::task::spawn_blocking(move || {
            let flushed = store.flush();
            // The group may have ended meanwhile.
            let _ = inbox.blocking_send(Inbound::Flushed(flushed));
        });
    }

    pub(super) fn finish_if_complete(&mut self) {
        if !self.store.is_complete() || std::mem::replace(&mut self.finishing, true) {
            return;
        }
        let (store, inbox) = (self.store.clone(), self.shared.inbox.clone());
        tokio::task::spawn_blocking(move || {
            let finished = store.flush().map_err(FinishError::from).and_then(|()| store.finish());
            let _ = inbox.blocking_send(Inbound::Finished(finished));
        });
    }

    pub(super) fn on_finished(&mut self, finished: Result<PathBuf, FinishError>) {
        match finished {
            Ok(path) => {
                let elapsed = clock::now().since(self.started);
                self.view();
                self.shared.outcome.send_replace(Some(Ok(path.clone())));
                if !self.shared.is_source() {
                    self.shared.tell(Event::Complete { path, elapsed });
                }
            }
            Err(error) => {
                let text = error.to_string();
                self.fail(GroupError::Storage { text, kind: ErrorKind::Storage });
            }
        }
    }

    pub(super) fn fail_storage(&mut self, error: &StorageError) {
        self.fail(GroupError::Storage { text: error.to_string(), kind: ErrorKind::Storage });
    }

    /// The group cannot go on: it is left in good order.
    pub(super) fn fail(&mut self, error: GroupError) {
        if self.failure.is_none() {
            self.shared.tell(Event::Failed { text: error.to_string() });
            self.failure = Some(error);
        }
        self.leave();
    }

    pub(super) fn leave(&mut self) {
        if self.leaving_until.is_none() {
            self.leaving_until = Some(clock::now() + FAREWELL_WAIT);
            // Through the queue: an output may have brought us here.
            self.inputs.push_back(Input::Command(Command::Leave));
            if let Some(input) = self.inputs.pop_back() {
                self.handle(input);
            }
        }
    }

    /// Flushes links and files, and tells the handles that it is over.
    pub(super) async fn end(mut self) {
        self.shared.core.registry.remove(&self.shared.membership.tag);
        self.links.live().into_iter().for_each(|link| self.links.close(link));
        let drained = async {
            while !self.links.is_empty()
                && let Some(inbound) = self.inbox.recv().await
            {
                if let Inbound::Link(link, LinkEvent::Down(_)) = inbound {
                    self.links.remove(link);
                }
            }
        };
        // Links whose far end does not answer are cut off.
        let _ = tokio::time::timeout(FLUSH_WAIT, drained).await;
        self.links.abort_all();
        let store = self.store.clone();
        let flushed = tokio::task::spawn_blocking(move || store.flush()).await;
        if let Ok(Err(error)) = flushed {
            tracing::warn!(%error, "the last flush failed");
        }
        let Actor { shared, store, failure, state, .. } = self;
        drop((store, state));
        shared.close(failure.unwrap_or(GroupError::Left));
    }
}
