//! Shared groups by page, with the lag of each member.

use std::sync::Arc;

use thrum_engine::interest::SessionRef;
use thrum_engine::interest::groups::SharedGroup;
use thrum_protocol::server::GroupId;

use super::cursor::{Cursor, Listing};
use super::filter::{Figure, ProblemSet, Subject, check_pattern, problems};
use super::row::Backlog;
use super::sender::QuerySender;
use super::tasks::{TaskProgress, WorkerTask};
use super::wildcard::WildcardText;
use super::{CursorError, Page, QueryError, page_rows};
use crate::traffic::Traffic;

/// Groups that are read under the lock of their list at once: some microseconds.
const GROUPS_AT_ONCE: usize = 256;
/// Members of one group that are shown; the others are only counted.
const MEMBERS_SHOWN_MAX: usize = 1000;
/// Members of all groups of a page.
const PAGE_MEMBERS_MAX: usize = 4000;
/// Units of a member: some allocations.
const MEMBER_UNITS: u64 = 4;

/// A request for a page of shared groups, in the order in which they began.
#[derive(Clone, Debug, Default)]
pub struct GroupQuery {
    /// Name of the group.
    pub name: Option<WildcardText>,
    /// Its filter, without `$share/GROUP/`.
    pub filter: Option<WildcardText>,
    /// Rows at most, up to [`ROWS_MAX`](super::ROWS_MAX).
    pub limit: usize,
    /// The `next` of the page before.
    pub cursor: Option<Cursor>,
}

/// A shared group.
#[derive(Clone, Debug)]
pub struct GroupRow {
    /// Its name.
    pub name: String,
    /// Its filter, without `$share/GROUP/`.
    pub filter: String,
    /// How it chooses a member, as `broker.shared_strategy` names it.
    pub strategy: &'static str,
    /// Members.
    pub members: usize,
    /// Members that are connected.
    pub connected: usize,
    /// The members and the lag of each, at most 1,000. The queue and the messages
    /// in flight of a member contain those of its other subscriptions.
    pub shown: Vec<MemberRow>,
}

/// A member of a shared group.
#[derive(Clone, Debug)]
pub struct MemberRow {
    /// Client identifier.
    pub client_id: Box<str>,
    /// User; none if no user was verified.
    pub user: Option<Box<str>>,
    /// It is connected.
    pub is_connected: bool,
    /// Messages in its queue.
    pub queued: Backlog,
    /// Messages that were sent and not acknowledged.
    pub inflight: usize,
    /// Seconds since the oldest queued message was queued.
    pub oldest_queued_secs: Option<u64>,
    /// Seconds since the session got the oldest message that was sent and not acknowledged.
    pub oldest_unacknowledged_secs: Option<u64>,
    /// Seconds since its last packet, or since its connection ended.
    pub idle_secs: u64,
    /// Its problems now.
    pub problems: ProblemSet,
}

/// See [`Queries::groups`](super::Queries::groups).
pub(super) fn groups(
    sender: &QuerySender,
    query: &GroupQuery,
) -> Result<Page<GroupRow>, QueryError> {
    for (what, pattern) in [("groups", &query.name), ("filters", &query.filter)] {
        if let Some(pattern) = pattern {
            check_pattern(what, pattern)?;
        }
    }
    let (found, next) = found(sender, query)?;
    let members = found.iter().flat_map(|group| &group.shown).copied();
    let wanted = Arc::new(members.collect::<Vec<_>>());
    let mut members = vec![None; wanted.len()];
    if !wanted.is_empty() {
        for answer in sender.query_all(|| ShowMembers::new(&wanted))? {
            for (place, member) in answer {
                members[place] = Some(member);
            }
        }
    }
    let mut members = members.into_iter();
    let rows = found.into_iter().map(|group| {
        // A session may have ended meanwhile.
        let shown = members.by_ref().take(group.shown.len()).flatten();
        GroupRow {
            shown: shown.collect(),
            ..group.row
        }
    });
    Ok(Page {
        rows: rows.collect(),
        next: next.map(|next| Cursor::new(Listing::Groups, &next.to_le_bytes())),
    })
}

/// A group with the members to be shown.
struct FoundGroup {
    row: GroupRow,
    shown: Vec<SessionRef>,
}

/// The groups of a page, and the number that the next page begins with.
fn found(
    sender: &QuerySender,
    query: &GroupQuery,
) -> Result<(Vec<FoundGroup>, Option<GroupId>), QueryError> {
    let first = query.cursor.as_ref().map(read_position).transpose()?;
    let mut next = first.unwrap_or(0);
    let (mut found, mut members) = (Vec::new(), 0);
    loop {
        let interest = &sender.node().state.interest;
        let groups = interest.groups_from(next, GROUPS_AT_ONCE);
        if groups.is_empty() {
            return Ok((found, None));
        }
        for group in groups {
            if found.len() >= page_rows(query.limit) || members >= PAGE_MEMBERS_MAX {
                return Ok((found, Some(group.id)));
            }
            let Some(behind) = group.id.checked_add(1) else {
                return Ok((found, None));
            };
            next = behind;
            if let Some(group) = matching(query, &group) {
                members += group.shown.len();
                found.push(group);
            }
        }
    }
}

fn read_position(cursor: &Cursor) -> Result<GroupId, CursorError> {
    let position = cursor.position(Listing::Groups)?;
    let position = position.try_into().map_err(|_| CursorError)?;
    Ok(GroupId::from_le_bytes(position))
}

/// A group, if it matches and still has members.
fn matching(query: &GroupQuery, group: &SharedGroup) -> Option<FoundGroup> {
    let is_like = |pattern: &Option<WildcardText>, text: &str| {
        let pattern = pattern.as_ref();
        pattern.is_none_or(|pattern| pattern.matches(text))
    };
    if !is_like(&query.name, group.name()) || !is_like(&query.filter, group.filter()) {
        return None;
    }
    let members = group.members()?;
    let shown = members.members().take(MEMBERS_SHOWN_MAX);
    Some(FoundGroup {
        row: GroupRow {
            name: group.name().to_owned(),
            filter: group.filter().to_owned(),
            strategy: members.strategy().name(),
            members: members.len(),
            connected: members.online_count(),
            shown: Vec::new(),
        },
        shown: shown.map(|(member, _)| member.session).collect(),
    })
}

/// One worker's part of the members of a page.
#[derive(Debug)]
struct ShowMembers {
    wanted: Arc<Vec<SessionRef>>,
    next: usize,
    found: Vec<(usize, MemberRow)>,
}

impl ShowMembers {
    fn new(wanted: &Arc<Vec<SessionRef>>) -> Self {
        Self {
            wanted: Arc::clone(wanted),
            next: 0,
            found: Vec::new(),
        }
    }
}

impl WorkerTask for ShowMembers {
    type Answer = Vec<(usize, MemberRow)>;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<Self::Answer> {
        while let Some(session) = self.wanted.get(self.next) {
            let is_here = session.worker == traffic.engine.core.id;
            let member = is_here.then(|| member(traffic, *session)).flatten();
            let units = if member.is_some() { MEMBER_UNITS } else { 1 };
            self.found.extend(member.map(|member| (self.next, member)));
            traffic.engine.core.turn.work += units;
            self.next += 1;
            if self.next < self.wanted.len() && traffic.engine.core.turn.is_portion_over() {
                return TaskProgress::More;
            }
        }
        TaskProgress::Done(std::mem::take(&mut self.found))
    }
}

fn member(traffic: &mut Traffic, session: SessionRef) -> Option<MemberRow> {
    let Traffic { edge, engine, .. } = traffic;
    let client = engine.core.sessions.get(session.slot)?;
    if client.session.id() != session.id {
        return None;
    }
    let now = engine.core.turn.now;
    let (messages, bytes, inflight) = client.session.outbound().backlog();
    let subject = Subject {
        edge,
        engine,
        client,
    };
    Some(MemberRow {
        client_id: client.session.client_id().into(),
        user: client.owner().user().map(Into::into),
        is_connected: client.connection.is_some(),
        queued: Backlog {
            messages: messages as u64,
            bytes: bytes as u64,
        },
        inflight,
        oldest_queued_secs: Figure::OldestQueued.of(client, now),
        oldest_unacknowledged_secs: Figure::OldestUnacknowledged.of(client, now),
        idle_secs: Figure::Idle.of(client, now).unwrap_or(0),
        problems: problems(&subject, now),
    })
}
