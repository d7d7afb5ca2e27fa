//! Mail from one worker to another.

use thrum_engine::ids::{ConnectionId, ConnectionKey};
use thrum_engine::mail::EngineMail;
use thrum_engine::workers::WorkerId;

use super::two_workers;
use crate::mailbox::Mail;
use crate::traffic::Traffic;

const RECEIVER: WorkerId = WorkerId::new(1);

/// Sends mail of the engine, with a number.
fn send_of_engine(traffic: &mut Traffic, number: u32) {
    let id = ConnectionId {
        key: ConnectionKey::FIRST,
        serial: number,
    };
    let outboxes = &mut traffic.engine.core.outboxes;
    outboxes.send(RECEIVER, EngineMail::InquiryAnswered(id));
}

fn send_of_shell(traffic: &mut Traffic) {
    let outboxes = &mut traffic.engine.core.outboxes;
    traffic.shell_mail.send(outboxes, RECEIVER, Mail::StopWills);
}

/// The number of the engine's mail, or 0 for that of the shell.
fn number(mail: &Mail) -> u32 {
    match mail {
        Mail::Engine(EngineMail::InquiryAnswered(connection)) => connection.serial,
        _ => 0,
    }
}

#[test]
fn mail_of_the_engine_and_of_the_shell_arrives_in_the_order_in_which_it_was_sent() {
    let mut workers = two_workers();
    let traffic = &mut workers[0].traffic;
    send_of_shell(traffic);
    send_of_engine(traffic, 1);
    send_of_engine(traffic, 2);
    send_of_shell(traffic);
    send_of_shell(traffic);
    send_of_engine(traffic, 3);
    send_of_shell(traffic);
    workers[0].send_mail();
    let mut arrived = Vec::new();
    workers[1].node.mailbox(RECEIVER).take(&mut arrived);
    let order: Vec<u32> = arrived.iter().map(number).collect();
    assert_eq!(order, [0, 1, 2, 0, 0, 3, 0]);
}
