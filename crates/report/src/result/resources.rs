//! The resources of a process and its children.

use serde::{Deserialize, Deserializer, Serialize};

/// Use over one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// Cores in use in user mode.
    pub cores_user: f64,
    /// Cores in use in the kernel.
    pub cores_system: f64,
    /// Resident memory.
    pub rss_bytes: u64,
    /// Resident memory with shared pages divided among their users; 0 where it was not read in this
    /// second.
    pub pss_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// Open files.
    pub open_files: u64,
    /// Context switches per second.
    pub context_switches: f64,
    /// Bytes per second that the network interface of its machine received; loopback included.
    pub network_in_bytes: f64,
    /// Likewise sent.
    pub network_out_bytes: f64,
    /// Bytes per second read from disk.
    pub disk_read_bytes: f64,
    /// Bytes per second written to disk.
    pub disk_write_bytes: f64,
    /// Share of its machine's CPU that was kept from it by the machine that it is a guest of.
    pub machine_stolen: f64,
}

/// Use over the hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// CPU seconds in user mode.
    pub cpu_user_seconds: f64,
    /// CPU seconds in the kernel.
    pub cpu_system_seconds: f64,
    /// Cores in use on average.
    pub cores_avg: f64,
    /// Cores in use in the busiest second.
    pub cores_max: f64,
    /// The machine around it.
    #[serde(flatten)]
    pub machine: MachineUse,
    /// CPU microseconds per message received in the hold; none if there was none.
    pub cpu_us_per_message: Option<f64>,
    /// Messages in and out per second and core in use.
    pub messages_per_core_second: Option<f64>,
    /// Cores in use with all clients connected and no load.
    pub cores_idle: Option<f64>,
    /// Seconds that threads were ready to run and had no core, all threads together.
    pub waited_for_core_seconds: f64,
    /// Resident memory during the hold: highest, mean.
    pub rss_max_bytes: u64,
    /// See `rss_max_bytes`.
    pub rss_avg_bytes: u64,
    /// Highest PSS that was read during the hold.
    pub pss_max_bytes: u64,
    /// Mean PSS of the hold.
    pub pss_avg_bytes: u64,
    /// Seconds from the first connection until resident memory stayed within 1 % of its last value;
    /// none if it still changed at the end.
    pub rss_stable_seconds: Option<f64>,
    /// Before the first connection.
    pub memory_before: Memory,
    /// With all connections and no load.
    pub memory_connected: Memory,
    /// After the run.
    pub memory_end: Memory,
    /// Resident bytes that one connection added; meaningful for a freshly started broker.
    pub bytes_per_connection: Option<f64>,
    /// Most threads.
    pub threads_max: u64,
    /// Most open files.
    pub open_files_max: u64,
    /// Context switches of threads that waited for something.
    pub voluntary_context_switches: u64,
    /// Context switches of threads that had to make room.
    pub involuntary_context_switches: u64,
    /// Bytes per second received by its machine's network interfaces, loopback included.
    pub network_in_bytes: f64,
    /// Likewise sent.
    pub network_out_bytes: f64,
    /// Bytes read from disk.
    pub disk_read_bytes: u64,
    /// Bytes written to disk.
    pub disk_write_bytes: u64,
}

/// Use of the whole machine over the hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineUse {
    /// Share of its CPU that was idle (mean), as `1 - idle` is what some reports call CPU.
    #[serde(rename = "machine_idle")]
    pub idle: f64,
    /// Share of its CPU that was kept from it by the machine that it is a guest of.
    #[serde(rename = "machine_stolen")]
    pub stolen: f64,
    /// CPU microseconds of all processes and the kernel per message received in the hold; none if
    /// there was none. On a machine of its own it has all of what a broker costs, also what the
    /// kernel did for it elsewhere.
    #[serde(rename = "machine_cpu_us_per_message")]
    pub cpu_us_per_message: Option<f64>,
    /// Bytes of kernel memory that one connection added; with the generator on the same machine,
    /// those of both ends. None where there were too few connections to tell.
    #[serde(rename = "machine_kernel_bytes_per_connection")]
    pub kernel_bytes_per_connection: Option<f64>,
}

/// Usage that was not measured adds no field; all fields have defaults, so it would otherwise read
/// as zeros.
pub(super) fn measured<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Usage>, D::Error> {
    let usage = Usage::deserialize(from)?;
    Ok((usage != Usage::default()).then_some(usage))
}

/// Memory at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Resident.
    pub rss_bytes: u64,
    /// Resident, shared pages divided among their users.
    pub pss_bytes: u64,
    /// Of the kernel of its machine: objects, stacks and page tables; 0 where it was not read.
    pub kernel_bytes: u64,
}

/// One thread of the generator, as shares of the hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadLoad {
    /// On a core.
    pub busy: f64,
    /// On a core in its busiest second, as a share of that.
    pub busy_max: f64,
    /// Ready to run, waiting for a core.
    pub waited_for_core: f64,
}
