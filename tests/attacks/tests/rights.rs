//! Attacks that must not succeed at all.

use thrum_attacks::attacks::{folders, identity};
use thrum_attacks::{Outcome, Site};

#[track_caller]
fn check(attack: fn(&Site) -> Outcome) {
    let outcome = attack(&Site::of_tests());
    assert_eq!(outcome.wrong, None);
}

#[test]
fn revoked_rights_apply_to_waiting_messages() {
    check(identity::revoked_rights);
}

#[test]
fn the_owner_of_a_client_identifier_is_not_banned_for_others() {
    check(identity::flapping);
}

#[test]
fn a_session_is_taken_over_by_its_user_only() {
    check(identity::takeover);
}

#[test]
fn a_proxy_without_a_client_is_not_a_local_client() {
    check(identity::nameless_proxy);
}

#[test]
fn commands_of_root_follow_no_links_of_the_owner_of_the_data() {
    check(folders::links);
}

#[test]
fn secrets_and_data_are_readable_only_by_the_owner() {
    check(folders::secrets);
}
