//! The kinds of alarms.

/// How urgent an alarm is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// Data is lost or refused now.
    Critical,
    /// That is near.
    Warning,
}

impl Severity {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
        }
    }
}

/// A kind of alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AlarmName {
    AuditLogFailing,
    CertificateExpired,
    CertificateExpiresSoon,
    ClockStepped,
    ConnectionsNearLimit,
    CpuBusy,
    DiskNearlyFull,
    DropsGoingOn,
    MemoryNearLimit,
    OpenFilesNearLimit,
    Overload,
    QueuesNearlyFull,
    RefusalsGoingOn,
    ReloadFailed,
    SinkNotDelivering,
    StorageFailing,
    StorageFull,
}

impl AlarmName {
    pub(crate) const ALL: [Self; 17] = [
        Self::AuditLogFailing,
        Self::CertificateExpired,
        Self::CertificateExpiresSoon,
        Self::ClockStepped,
        Self::ConnectionsNearLimit,
        Self::CpuBusy,
        Self::DiskNearlyFull,
        Self::DropsGoingOn,
        Self::MemoryNearLimit,
        Self::OpenFilesNearLimit,
        Self::Overload,
        Self::QueuesNearlyFull,
        Self::RefusalsGoingOn,
        Self::ReloadFailed,
        Self::SinkNotDelivering,
        Self::StorageFailing,
        Self::StorageFull,
    ];

    /// Its name in lists, metrics and the log; it stays the same in later versions.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::AuditLogFailing => "audit_log_failing",
            Self::CertificateExpired => "certificate_expired",
            Self::CertificateExpiresSoon => "certificate_expires_soon",
            Self::ClockStepped => "clock_stepped",
            Self::ConnectionsNearLimit => "connections_near_limit",
            Self::CpuBusy => "cpu_busy",
            Self::DiskNearlyFull => "disk_nearly_full",
            Self::DropsGoingOn => "drops_going_on",
            Self::MemoryNearLimit => "memory_near_limit",
            Self::OpenFilesNearLimit => "open_files_near_limit",
            Self::Overload => "overload",
            Self::QueuesNearlyFull => "queues_nearly_full",
            Self::RefusalsGoingOn => "refusals_going_on",
            Self::ReloadFailed => "reload_failed",
            Self::SinkNotDelivering => "sink_not_delivering",
            Self::StorageFailing => "storage_failing",
            Self::StorageFull => "storage_full",
        }
    }

    pub(crate) const fn severity(self) -> Severity {
        match self {
            Self::AuditLogFailing
            | Self::CertificateExpired
            | Self::SinkNotDelivering
            | Self::StorageFailing
            | Self::StorageFull => Severity::Critical,
            Self::CertificateExpiresSoon
            | Self::ClockStepped
            | Self::ConnectionsNearLimit
            | Self::CpuBusy
            | Self::DiskNearlyFull
            | Self::DropsGoingOn
            | Self::MemoryNearLimit
            | Self::OpenFilesNearLimit
            | Self::Overload
            | Self::QueuesNearlyFull
            | Self::RefusalsGoingOn
            | Self::ReloadFailed => Severity::Warning,
        }
    }
}
