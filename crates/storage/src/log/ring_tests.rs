//! The ring on a simulated disk: space of a commit, end of a segment, notes of the end.

use super::format::{GROUP_BYTES_MAX, SEGMENT_HEADER_LEN, SegmentHeader};
use super::gone::{END, END_LEN, End, Loss};
use super::ring::{Log, WriteError, framed_len, group_part, segment_name};
use super::{LogOptions, LogReport};
use crate::disk::sim::{Faults, SimDisk, SimStorage};
use crate::record::{UNIT_END, WORD_LEN};

const SEGMENT: u64 = 4096;
/// Bytes of a record, its frame and its group, before they are rounded up to a multiple of 8.
const RECORD_FRAME: u64 = 8;
const GROUP_FRAME: u64 = 16;
const HEADER: u64 = SEGMENT_HEADER_LEN as u64;

fn options(segments: u64) -> LogOptions {
    LogOptions {
        segment_bytes: SEGMENT,
        disk_bytes_max: segments * SEGMENT + END_LEN as u64,
        sync: true,
    }
}

/// Opens a log and returns its records.
fn open(storage: &SimStorage, options: LogOptions) -> (Log<SimDisk>, Vec<Vec<u8>>, LogReport) {
    let mut records = Vec::new();
    let opened = Log::open(storage.open().unwrap(), options, &mut |payload| {
        records.push(payload.to_vec());
        true
    });
    let (log, report) = opened.unwrap();
    (log, records, report)
}

/// Units of one record each, of these lengths.
fn units(lens: &[usize]) -> Vec<u8> {
    let mut records = Vec::new();
    for (number, len) in lens.iter().enumerate() {
        let word = u32::try_from(*len).unwrap() | UNIT_END;
        records.extend_from_slice(&word.to_le_bytes());
        records.resize(records.len() + len, u8::try_from(number % 250 + 1).unwrap());
    }
    records
}

#[track_caller]
fn write(log: &mut Log<SimDisk>, lens: &[usize]) {
    let records = units(lens);
    let (done, result) = log.write(&records);
    result.unwrap();
    assert_eq!(done, records.len());
}

fn noted(storage: &SimStorage) -> Option<End> {
    End::decode(storage.files().get(END)?)
}

fn group_len(lens: &[u64]) -> u64 {
    let framed: u64 = lens.iter().map(|len| len + RECORD_FRAME).sum();
    (GROUP_FRAME + framed).next_multiple_of(8)
}

#[test]
fn segments_sort_by_their_names() {
    assert_eq!(segment_name(7), "00000000000000000007.log");
    assert_eq!(segment_name(u64::MAX), "18446744073709551615.log");
}

#[test]
fn a_log_knows_its_size_and_the_room_of_its_segment() {
    let storage = SimStorage::new(1);
    let (mut log, ..) = open(&storage, options(64));
    assert_eq!((log.size().segments, log.room()), (0, 0));
    assert_eq!(log.size().used_bytes, END_LEN as u64);
    assert!(log.is_half_full(), "the next commit needs a segment");
    write(&mut log, &[100, 3]);
    let len = HEADER + group_len(&[100, 3]);
    assert_eq!((log.size().segments, log.room()), (1, SEGMENT - len));
    assert_eq!(log.content_bytes(), SEGMENT);
    assert_eq!(log.size().used_bytes, SEGMENT + END_LEN as u64);
    assert!(!log.is_half_full());
    // To the half, and eight bytes more.
    let rest = SEGMENT / 2 - len;
    let record = usize::try_from(rest - GROUP_FRAME - RECORD_FRAME).unwrap();
    write(&mut log, &[record]);
    assert_eq!(log.room(), SEGMENT / 2);
    assert!(!log.is_half_full());
    write(&mut log, &[0]);
    assert!(log.is_half_full());
}

#[test]
fn a_unit_that_fits_is_written_into_the_segment_and_the_next_one_names_it() {
    let storage = SimStorage::new(2);
    let (mut log, ..) = open(&storage, options(64));
    // The space that is reserved for a unit is never less than the space that it takes.
    let most = SEGMENT - HEADER - GROUP_FRAME - RECORD_FRAME - 8;
    write(&mut log, &[usize::try_from(most).unwrap()]);
    assert_eq!((log.size().segments, log.room()), (1, 8));
    write(&mut log, &[1]);
    assert_eq!(log.size().segments, 2);
    let bytes = &storage.files()[&segment_name(2)];
    let header = SegmentHeader::decode(bytes).unwrap();
    assert_eq!((header.number, header.previous), (2, 1));
    assert_eq!(header.previous_len, SEGMENT - 8);
    let first = SegmentHeader::decode(&storage.files()[&segment_name(1)]).unwrap();
    assert_eq!(
        (first.number, first.previous, first.previous_len),
        (1, 0, 0)
    );
}

#[test]
fn a_segment_is_filled_as_far_as_the_next_unit_fits() {
    for (more, segments) in [(0, 1), (1, 2)] {
        let storage = SimStorage::new(14);
        let (mut log, ..) = open(&storage, options(64));
        write(&mut log, &[100]);
        let fitting = log.room() - GROUP_FRAME - RECORD_FRAME - 8;
        write(&mut log, &[usize::try_from(fitting + more).unwrap()]);
        assert_eq!(log.size().segments, segments);
    }
}

#[test]
fn a_disk_without_a_spare_has_no_room_below_two_free_segments() {
    let storage = SimStorage::new(15);
    let (mut log, ..) = open(&storage, options(64));
    write(&mut log, &[100]);
    let used = storage.files().values().map(Vec::len).sum::<usize>() as u64;
    for (free, expected) in [(2 * SEGMENT, false), (2 * SEGMENT - 1, true)] {
        storage.set_faults(Faults {
            space_bytes: used + free,
            ..Faults::default()
        });
        assert_eq!(log.disk_free_bytes().unwrap(), free);
        assert_eq!(log.has_no_room(), expected);
    }
    storage.set_faults(Faults {
        space_bytes: used + 2 * SEGMENT,
        ..Faults::default()
    });
    while !log.prepare_spare(SEGMENT).unwrap() {}
    assert_eq!(log.disk_free_bytes().unwrap(), 0);
    assert!(!log.has_no_room());
}

#[test]
fn a_unit_that_does_not_fit_into_any_segment_gets_a_larger_one() {
    let storage = SimStorage::new(3);
    let (mut log, ..) = open(&storage, options(64));
    write(&mut log, &[10]);
    write(&mut log, &[10_000]);
    assert_eq!(log.size().segments, 2);
    let large = HEADER + framed_len(&units(&[10_000]));
    assert_eq!(log.content_bytes(), SEGMENT + large);
    assert_eq!(log.room(), large - HEADER - group_len(&[10_000]));
    write(&mut log, &[10]);
    assert_eq!(log.size().segments, 3);
    assert_eq!(log.room(), SEGMENT - HEADER - group_len(&[10]));
    drop(log);
    let (_, records, _) = open(&storage, options(64));
    let lens: Vec<usize> = records.iter().map(Vec::len).collect();
    assert_eq!(lens, [10, 10_000, 10]);
}

#[test]
fn a_group_takes_whole_units_as_far_as_there_is_room() {
    let (large, framed) = (GROUP_BYTES_MAX + 5, |records: &[u8]| framed_len(records));
    let records = units(&[100, 200, 300]);
    assert_eq!(framed(&records), 600 + 3 * RECORD_FRAME + GROUP_FRAME + 8);
    let (first, two) = (WORD_LEN + 100, 2 * WORD_LEN + 300);
    let needs = framed(&records[..two]);
    assert_eq!(group_part(&records, u64::MAX), records.len());
    assert_eq!(group_part(&records, needs), two);
    assert_eq!(group_part(&records, needs - 1), first);
    assert_eq!(group_part(&records, framed(&records[..first]) - 1), 0);
    assert_eq!(group_part(&[], u64::MAX), 0);
    // A unit that is larger than groups should be is alone in its group.
    let records = units(&[large, 10]);
    assert_eq!(group_part(&records, u64::MAX), WORD_LEN + large);
    assert_eq!(group_part(&units(&[10, large]), u64::MAX), WORD_LEN + 10);
    // Units up to that size share a group.
    let frames = 2 * RECORD_FRAME + GROUP_FRAME + 8;
    let left = GROUP_BYTES_MAX - usize::try_from(frames).unwrap() - 10;
    let full = units(&[10, left]);
    assert_eq!(group_part(&full, u64::MAX), full.len());
    assert_eq!(group_part(&units(&[10, left + 1]), u64::MAX), WORD_LEN + 10);
}

#[test]
fn records_of_one_unit_stay_in_one_group() {
    let mut records = units(&[100]);
    // Another record of the same unit, and a unit of its own.
    records[..WORD_LEN].copy_from_slice(&100_u32.to_le_bytes());
    records.extend_from_slice(&units(&[200, 300]));
    let unit = 2 * WORD_LEN + 300;
    assert_eq!(group_part(&records, framed_len(&records[..unit])), unit);
    assert_eq!(group_part(&records, framed_len(&records[..unit]) - 1), 0);
}

#[test]
fn the_end_is_noted_on_request_and_after_many_commits() {
    let storage = SimStorage::new(4);
    let (mut log, ..) = open(&storage, options(64));
    log.note_end();
    assert_eq!(noted(&storage), None, "there is no segment");
    for commits in 1..64 {
        write(&mut log, &[5]);
        assert_eq!(noted(&storage), None, "{commits}");
    }
    write(&mut log, &[5]);
    let end = noted(&storage).unwrap();
    assert_eq!((end.segment, end.records), (1, 64));
    assert_eq!(end.len, SEGMENT - log.room());
    write(&mut log, &[5, 5]);
    assert_eq!(noted(&storage), Some(end));
    log.note_end();
    assert_eq!(noted(&storage).unwrap().records, 66);
    for _ in 1..64 {
        write(&mut log, &[1]);
    }
    assert_eq!(
        noted(&storage).unwrap().records,
        66,
        "counted from the note on"
    );
}

#[test]
fn without_syncs_the_end_is_noted_only_when_the_log_is_closed() {
    let storage = SimStorage::new(5);
    let unsynced = LogOptions {
        sync: false,
        ..options(64)
    };
    let (mut log, ..) = open(&storage, unsynced);
    for _ in 0..70 {
        write(&mut log, &[5]);
    }
    log.note_end();
    assert_eq!(noted(&storage), None);
    log.close().unwrap();
    let room = log.room();
    assert_eq!(noted(&storage).unwrap().len, SEGMENT - room);
}

#[test]
fn a_log_that_was_closed_has_no_torn_end_and_a_full_disk_does_not_keep_it_from_closing() {
    let storage = SimStorage::new(6);
    let (mut log, ..) = open(&storage, options(64));
    log.close().unwrap();
    assert_eq!(log.size().segments, 0, "nothing was written");
    write(&mut log, &[100]);
    let before = log.room();
    log.close().unwrap();
    assert_eq!(before - log.room(), GROUP_FRAME);
    drop(log);
    let (mut log, records, _) = open(&storage, options(64));
    assert_eq!(records.len(), 1);
    write(&mut log, &[100]);
    let full = storage.files().values().map(Vec::len).sum::<usize>() as u64;
    storage.set_faults(Faults {
        space_bytes: full,
        ..Faults::default()
    });
    log.close().unwrap();
    storage.set_faults(Faults {
        write_errors: 1000,
        ..Faults::default()
    });
    assert!(matches!(log.close(), Err(WriteError::Io(_))));
    storage.set_faults(Faults {
        sync_errors: 1000,
        ..Faults::default()
    });
    assert!(matches!(log.close(), Err(WriteError::Io(_))));
}

#[test]
fn the_log_grows_to_its_limit_and_not_beyond() {
    let storage = SimStorage::new(7);
    let (mut log, ..) = open(&storage, options(3));
    let unit = usize::try_from(SEGMENT / 2).unwrap();
    for segments in 1..=3 {
        write(&mut log, &[unit]);
        assert_eq!(log.size().segments, segments);
    }
    assert_eq!(log.size().used_bytes, options(3).disk_bytes_max);
    let (done, result) = log.write(&units(&[100, unit]));
    assert_eq!(done, WORD_LEN + 100, "the first unit still fits");
    assert!(matches!(result, Err(WriteError::LimitReached)));
    assert_eq!(log.size().segments, 3);
}

#[test]
fn the_spare_and_the_reserve_are_used_or_removed_for_new_records() {
    let storage = SimStorage::new(8);
    // Segments, one more that is ready, and the reserve.
    let (mut log, ..) = open(&storage, options(4));
    let unit = usize::try_from(SEGMENT / 2).unwrap();
    write(&mut log, &[unit]);
    while !log.prepare_spare(SEGMENT).unwrap() {}
    let files = storage.files();
    assert!(files.contains_key("spare") && files.contains_key("reserve"));
    assert_eq!(log.size().used_bytes, 3 * SEGMENT + END_LEN as u64);
    write(&mut log, &[unit]);
    assert!(
        !storage.files().contains_key("spare"),
        "it is the segment now"
    );
    assert_eq!(log.size().used_bytes, 3 * SEGMENT + END_LEN as u64);
    write(&mut log, &[unit]);
    assert!(storage.files().contains_key("reserve"));
    assert_eq!(log.size().used_bytes, 4 * SEGMENT + END_LEN as u64);
    write(&mut log, &[unit]);
    assert!(!storage.files().contains_key("reserve"));
    assert_eq!(log.size().segments, 4);
    drop(log);
    let (_, records, _) = open(&storage, options(4));
    assert_eq!(records.len(), 4);
}

#[test]
fn a_spare_that_is_too_small_for_a_unit_is_removed() {
    let storage = SimStorage::new(9);
    let (mut log, ..) = open(&storage, options(4));
    write(&mut log, &[10]);
    while !log.prepare_spare(SEGMENT).unwrap() {}
    assert!(storage.files().contains_key("spare"));
    write(&mut log, &[usize::try_from(2 * SEGMENT).unwrap()]);
    assert!(!storage.files().contains_key("spare"));
    assert!(!storage.files().contains_key("reserve"));
    assert_eq!(log.size().segments, 2);
}

#[test]
fn the_spare_and_the_reserve_are_prepared_only_within_the_limit() {
    for (missing_bytes, is_prepared) in [(0, true), (1, false)] {
        let storage = SimStorage::new(16);
        let tight = LogOptions {
            disk_bytes_max: options(2).disk_bytes_max - missing_bytes,
            ..options(2)
        };
        let (mut log, ..) = open(&storage, tight);
        write(&mut log, &[10]);
        assert!(log.prepare_spare(SEGMENT).unwrap());
        assert_eq!(storage.files().contains_key("spare"), is_prepared);
        assert!(!storage.files().contains_key("reserve"));
    }
    let storage = SimStorage::new(17);
    let (mut log, ..) = open(&storage, options(4));
    let unit = usize::try_from(SEGMENT / 2).unwrap();
    let has = |name| storage.files().contains_key(name);
    // The reserve stays beside two segments and the spare, and not beside three.
    for (segments, has_reserve) in [(1, true), (2, true), (3, false)] {
        write(&mut log, &[unit]);
        while !log.prepare_spare(SEGMENT).unwrap() {}
        assert_eq!(log.size().segments, segments);
        assert_eq!((has("spare"), has("reserve")), (true, has_reserve));
    }
}

#[test]
fn a_segment_is_reclaimed_only_if_two_closed_segments_follow_it() {
    let storage = SimStorage::new(18);
    let (mut log, ..) = open(&storage, options(64));
    let unit = usize::try_from(SEGMENT / 2).unwrap();
    for (segments, is_wanted) in [(1, false), (2, false), (3, false), (4, true)] {
        write(&mut log, &[unit]);
        assert_eq!(log.size().segments, segments);
        let is_cramped = true;
        assert_eq!(log.wants_reclaim(0, is_cramped), is_wanted);
    }
}

#[test]
fn a_segment_that_is_shorter_than_its_recorded_length_has_lost_the_rest() {
    let unit = SEGMENT / 2;
    for missing_bytes in [0, 8] {
        let storage = SimStorage::new(21);
        let (mut log, ..) = open(&storage, options(64));
        for _ in 0..3 {
            write(&mut log, &[usize::try_from(unit).unwrap()]);
        }
        drop(log);
        let name = segment_name(1);
        let mut bytes = storage.files()[&name].clone();
        let len = HEADER + group_len(&[unit]) - missing_bytes;
        bytes.truncate(usize::try_from(len).unwrap());
        storage.put(&name, &bytes);
        let (.., report) = open(&storage, options(64));
        let shortened = report
            .gone
            .iter()
            .filter(|gone| gone.what == Loss::Shortened);
        let lost: Vec<_> = shortened.map(|gone| (gone.segment, gone.bytes)).collect();
        let expected = (missing_bytes > 0).then_some((1, missing_bytes));
        assert_eq!(lost, Vec::from_iter(expected));
    }
}

#[test]
fn a_log_is_reclaimed_above_twice_its_current_data_and_on_a_full_disk_earlier() {
    // The size limit in segments, live bytes, and whether five segments are too much on a disk with
    // room and on one without.
    for (limit, live_bytes, expected) in [
        (64, 0, [true, true]),
        (64, SEGMENT * 3 / 2 - 1, [true, true]),
        (64, SEGMENT * 3 / 2, [false, true]),
        (64, SEGMENT * 3 - 1, [false, true]),
        (64, SEGMENT * 3, [false, false]),
        // Three segments below the limit are the maximum.
        (7, SEGMENT * 3 - 1, [true, true]),
        (7, SEGMENT * 3, [false, false]),
    ] {
        let storage = SimStorage::new(19);
        let (mut log, ..) = open(&storage, options(limit));
        for _ in 0..5 {
            write(&mut log, &[usize::try_from(SEGMENT / 2).unwrap()]);
        }
        assert_eq!(log.content_bytes(), 5 * SEGMENT);
        let wanted = [false, true].map(|is_cramped| log.wants_reclaim(live_bytes, is_cramped));
        assert_eq!(wanted, expected, "{live_bytes} of {limit}");
    }
    let storage = SimStorage::new(20);
    let (mut log, ..) = open(&storage, options(64));
    for _ in 0..4 {
        write(&mut log, &[usize::try_from(SEGMENT / 2).unwrap()]);
    }
    assert!(
        !log.wants_reclaim(0, false),
        "four segments are always free"
    );
}

#[test]
fn a_segment_whose_write_failed_ends_where_it_was_safe() {
    let storage = SimStorage::new(10);
    let (mut log, ..) = open(&storage, options(64));
    write(&mut log, &[100]);
    storage.set_faults(Faults {
        sync_errors: 1000,
        ..Faults::default()
    });
    let (done, result) = log.write(&units(&[200]));
    assert_eq!(done, 0);
    assert!(matches!(result, Err(WriteError::Io(_))));
    assert_eq!((log.size().segments, log.room()), (1, 0));
    storage.set_faults(Faults::default());
    write(&mut log, &[200]);
    assert_eq!(log.size().segments, 2);
    let header = SegmentHeader::decode(&storage.files()[&segment_name(2)]).unwrap();
    assert_eq!(header.previous_len, HEADER + group_len(&[100]));
    drop(log);
    let (_, records, _) = open(&storage, options(64));
    assert_eq!(records.iter().map(Vec::len).collect::<Vec<_>>(), [100, 200]);
}

#[test]
fn a_segment_in_which_nothing_was_written_is_removed() {
    let storage = SimStorage::new(11);
    let (mut log, ..) = open(&storage, options(64));
    storage.set_faults(Faults {
        write_errors: 1000,
        ..Faults::default()
    });
    assert!(log.write(&units(&[100])).1.is_err());
    assert_eq!(log.size().segments, 0);
    assert!(!storage.files().contains_key(&segment_name(1)));
    storage.set_faults(Faults::default());
    write(&mut log, &[100]);
    let header = SegmentHeader::decode(&storage.files()[&segment_name(2)]).unwrap();
    assert_eq!(header.previous, 0);
}

#[test]
fn a_log_on_a_full_disk_uses_the_reserve() {
    let storage = SimStorage::new(12);
    let (mut log, ..) = open(&storage, options(64));
    let unit = usize::try_from(SEGMENT / 2).unwrap();
    write(&mut log, &[unit]);
    while !log.prepare_spare(SEGMENT).unwrap() {}
    assert!(!log.has_no_room());
    write(&mut log, &[unit]);
    let full = storage.files().values().map(Vec::len).sum::<usize>() as u64;
    storage.set_faults(Faults {
        space_bytes: full,
        ..Faults::default()
    });
    assert!(log.has_no_room());
    write(&mut log, &[100]);
    assert!(storage.files().contains_key("reserve"));
    assert_eq!(
        log.size().segments,
        2,
        "the second segment was written in advance"
    );
    let (done, result) = log.write(&units(&[unit, unit]));
    assert!(matches!(result, Err(WriteError::NoSpace(_))));
    assert_eq!(
        done,
        WORD_LEN + unit,
        "one unit still fits into the reserve"
    );
    assert!(!storage.files().contains_key("reserve"));
    assert_eq!(log.size().segments, 3);
}

#[test]
fn an_unfinished_spare_is_removed_when_the_disk_is_full() {
    let storage = SimStorage::new(13);
    let (mut log, ..) = open(&storage, options(64));
    write(&mut log, &[10]);
    assert!(!log.prepare_spare(SEGMENT / 2).unwrap());
    assert!(storage.files().contains_key("spare.new"));
    let full = storage.files().values().map(Vec::len).sum::<usize>() as u64;
    storage.set_faults(Faults {
        space_bytes: full,
        ..Faults::default()
    });
    write(&mut log, &[1000]);
    assert!(!storage.files().contains_key("spare.new"));
}

#[test]
fn a_limit_of_file_sizes_is_a_full_disk() {
    use std::io::ErrorKind::{FileTooLarge, PermissionDenied, QuotaExceeded, StorageFull};
    for kind in [FileTooLarge, QuotaExceeded, StorageFull] {
        let error = WriteError::from(std::io::Error::from(kind));
        assert!(matches!(error, WriteError::NoSpace(_)), "{kind:?}");
    }
    let other = WriteError::from(std::io::Error::from(PermissionDenied));
    assert!(matches!(other, WriteError::Io(_)));
}
