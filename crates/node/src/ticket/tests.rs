use super::*;
use crate::address;
use proptest::prelude::*;

fn ticket() -> Ticket {
    let source = PeerId([2; 32]);
    let at = |text: &str| address::contact(&[text.parse().unwrap()], true);
    Ticket {
        root: [1; 32],
        source,
        secret: JoinSecret([3; 16]),
        contacts: vec![
            PeerInfo { id: source, contact: at("192.0.2.1:27182") },
            PeerInfo { id: PeerId([4; 32]), contact: at("[2001:db8::1]:27183") },
        ],
    }
}

fn tickets() -> impl Strategy<Value = Ticket> {
    let contact = (any::<[u8; 32]>(), any::<bool>(), prop::collection::vec(any::<u8>(), 0..=160))
        .prop_map(|(id, reachable, addresses)| PeerInfo {
            id: PeerId(id),
            contact: Contact { addresses, reachable },
        });
    let keys = (any::<[u8; 32]>(), any::<[u8; 32]>(), any::<[u8; 16]>());
    (keys, prop::collection::vec(contact, 0..=CONTACTS_MAX)).prop_map(
        |((root, source, secret), contacts)| Ticket {
            root,
            source: PeerId(source),
            secret: JoinSecret(secret),
            contacts,
        },
    )
}

proptest! {
    #[test]
    fn a_ticket_survives_printing(ticket in tickets()) {
        let text = ticket.to_string();
        prop_assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b':'));
        prop_assert_eq!(text.parse::<Ticket>(), Ok(ticket.clone()));
        let clumsy = format!("  {}\n", text.to_uppercase());
        prop_assert_eq!(clumsy.parse::<Ticket>(), Ok(ticket));
    }

    #[test]
    fn a_mistyped_character_is_never_accepted(
        ticket in tickets(),
        at in any::<prop::sample::Index>(),
        with in "[a-z2-7]",
    ) {
        let text = ticket.to_string();
        let at = "anabranch1:".len() + at.index(text.len() - "anabranch1:".len() - 1);
        let mut typed = text.clone();
        typed.replace_range(at..=at, &with);
        prop_assume!(typed != text);
        prop_assert!(matches!(
            typed.parse::<Ticket>(),
            Err(TicketError::Mistyped | TicketError::Truncated)
        ));
    }

    #[test]
    fn a_ticket_that_is_cut_off_says_so(ticket in tickets(), keep in any::<prop::sample::Index>()) {
        let text = ticket.to_string();
        let keep = "anabranch1:".len() + keep.index(text.len() - "anabranch1:".len());
        prop_assert_eq!(text[..keep].parse::<Ticket>(), Err(TicketError::Truncated));
    }

    #[test]
    fn no_text_panics_the_decoder(text in "\\PC*", body in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = text.parse::<Ticket>();
        let _ = format!("anabranch1:{text}").parse::<Ticket>();
        let _ = Ticket::from_body(&body);
    }
}

#[test]
fn each_way_to_be_wrong_has_its_own_sentence() {
    let text = ticket().to_string();
    let parse = |text: &str| text.parse::<Ticket>();
    assert_eq!(parse("https://example.org/x"), Err(TicketError::NotATicket));
    assert_eq!(parse("hello"), Err(TicketError::NotATicket));
    assert_eq!(parse(""), Err(TicketError::NotATicket));
    assert_eq!(parse(&text.replace("anabranch1", "anabranch2")), Err(TicketError::LaterVersion(2)));
    assert_eq!(parse(&text.replace("anabranch1", "anabranch0")), Err(TicketError::NotATicket));
    assert_eq!(parse(&format!("{text}aaaa")), Err(TicketError::Extra));
    assert_eq!(parse(&text.replacen("ai", "a!", 1)), Err(TicketError::Character('!')));
}

#[test]
fn a_ticket_never_shows_its_secret_in_debug_output() {
    let shown = format!("{:?}", ticket());
    assert_eq!(shown, "Ticket(0101010101010101…)");
}

#[test]
fn the_text_of_a_ticket_is_what_it_was_in_version_1() {
    assert_eq!(ticket().to_string(), GOLDEN);
    assert_eq!(GOLDEN.parse::<Ticket>(), Ok(ticket()));
}

const GOLDEN: &str = "anabranch1:aciqcaibaeaqcaibaeaqcaibaeaqcaibaeaqcaibaeaqcaibaeaqcaicaibaeaqca\
    ibaeaqcaibaeaqcaibaeaqcaibaeaqcaibaeaqcaibqgaydambqgaydambqgaydambqeaaba4cma\
    aacafvc4aieaqcaibaeaqcaibaeaqcaibaeaqcaibaeaqcaibaeaqcaibaeaqargbraaeg3qaaaa\
    aaaaaaaaaaaaaabnixvcvr2c4";
