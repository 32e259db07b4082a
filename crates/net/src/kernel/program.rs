//! Loads the BPF program and registers it under a name.
use super::check::{Machine, tells_start};
use super::compiled::tables;
use super::pins::{Maps, Pins, settings_for};
use super::record::{Decision, Flow, Plain, Totals};
use super::skeleton::{AckademySkelBuilder, OpenAckademySkel};
use super::table::Table;
use super::{NAME_MAX, Options};
use crate::error::Error;
use crate::output::hint;
use libbpf_rs::btf::{Btf, BtfType, types};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, PrintLevel};
use std::fs;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// The registered congestion control and its maps.
pub(super) struct Program {
    /// Holds the name, unless it is pinned.
    _link: Link,
    /// Keeps other daemons away.
    _pins: Option<Pins>,
    /// Flows may have been there before this process.
    pub taken_over: bool,
    pub records: MapHandle,
    pub decisions: Table<Decision>,
    pub flows: Table<Flow>,
    pub totals: Table<Totals>,
}

impl Program {
    /// Takes over what is pinned, or else loads, registers and pins.
    pub fn start(options: &Options) -> Result<Self, Error> {
        Machine::here(options.pins.as_deref()).require()?;
        let pins = options.pins.as_deref().map(Pins::claim).transpose()?;
        let taken_over = pins.as_ref().map_or(Ok(false), Pins::registered)?;
        let (link, maps) = match &pins {
            Some(pins) if taken_over => pins.open(options)?,
            _ => load(options, pins.as_ref())?,
        };
        Ok(Self {
            decisions: Table::map(&maps.decisions)?,
            flows: Table::map(&maps.flows)?,
            totals: Table::map(&maps.totals)?,
            records: maps.records,
            taken_over,
            _link: link,
            _pins: pins,
        })
    }
}

/// A congestion control that decides in the kernel: it needs no process where it is pinned, and ends with
/// this where it is not.
pub struct Registered(Program);

impl Registered {
    /// Registers it.
    ///
    /// # Errors
    ///
    /// If an option is out of range, the kernel cannot, or the caller may not.
    ///
    /// # Panics
    ///
    /// If the options name nothing that decides in the kernel.
    pub fn start(options: &Options) -> Result<Self, Error> {
        assert!(options.in_kernel.is_some(), "a compiled policy");
        Program::start(options).map(Self)
    }

    /// Counts over all flows.
    pub fn totals(&self) -> Totals {
        self.0.totals.read(0)
    }
}

/// Loads and registers; pins.
fn load(options: &Options, pins: Option<&Pins>) -> Result<(Link, Maps), Error> {
    unregistered(options)?;
    // Warnings as ever; that a member is unknown to this kernel is no news.
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| hint(format_args!("{text}")))));
    let shape = Shape::read()?;
    let mut storage = MaybeUninit::uninit();
    let mut open = AckademySkelBuilder::default()
        .open(&mut storage)
        .map_err(|error| Error::System(format!("cannot open the BPF program: {error}")))?;
    prepare(&mut open, options, shape)
        .map_err(|error| Error::System(format!("cannot prepare the BPF program: {error}")))?;
    let mut loaded = open.load().map_err(|error| refused(&error))?;
    let maps = &mut loaded.maps;
    let handle = |map| MapHandle::try_from(map).map_err(|error| refused(&error));
    let free_slots = handle(&maps.free_slots)?;
    for slot in 0..options.slots {
        free_slots
            .update(&[], &slot.to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| refused(&error))?;
    }
    let mut shared = Maps {
        records: handle(&maps.records)?,
        decisions: handle(&maps.decisions)?,
        flows: handle(&maps.flows)?,
        totals: handle(&maps.totals)?,
        settings: handle(&maps.settings)?,
    };
    shared.set(&settings_for(options))?;
    if let Some(compiled) = &options.in_kernel {
        let first = 0_u32.to_ne_bytes();
        let (network, rules) = (compiled.network_bytes(), compiled.rules);
        let written = maps.tables.update(&first, tables().bytes(), MapFlags::ANY);
        written
            .and_then(|()| maps.network.update(&first, &network, MapFlags::ANY))
            .and_then(|()| maps.policy.update(&first, rules.bytes(), MapFlags::ANY))
            .map_err(|error| refused(&error))?;
    }
    let operations = if shape.two_arguments { &mut maps.ackademy_v69 } else { &mut maps.ackademy };
    let mut link = operations
        .attach_struct_ops()
        .map_err(|error| Error::System(format!("cannot register `{}`: {error}", options.name)))?;
    if let Some(pins) = pins {
        pins.clear()?;
        pins.pin(&mut link, &mut shared)?;
    }
    Ok((link, shared))
}

/// The name is free.
fn unregistered(options: &Options) -> Result<(), Error> {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .unwrap_or_default();
    if !names.split_whitespace().any(|name| name == options.name) {
        return Ok(());
    }
    let pins = options
        .pins
        .as_ref()
        .map_or(String::new(), |pins| format!(", and it is not pinned in `{}`", pins.display()));
    Err(Error::Input(format!(
        "the kernel has a congestion control `{}` already{pins}: choose another --name, or end what serves it",
        options.name
    )))
}

/// What of the kernel's `tcp_congestion_ops` depends on its version.
#[derive(Clone, Copy)]
struct Shape {
    /// `cong_control` has two parameters, as before 6.10; later four.
    two_arguments: bool,
    /// [`tells_start`].
    tells_start: bool,
}

impl Shape {
    fn read() -> Result<Self, Error> {
        Btf::from_vmlinux().ok().and_then(|btf| Self::of(&btf)).ok_or_else(|| {
            Error::Input("the kernel describes no `tcp_congestion_ops` in its BTF: Linux 6.4 or newer with CONFIG_DEBUG_INFO_BTF is needed".to_owned())
        })
    }

    fn of(btf: &Btf) -> Option<Self> {
        let operations: types::Struct = btf.type_by_name("tcp_congestion_ops")?;
        let member = operations
            .iter()
            .find(|member| member.name.is_some_and(|name| name == "cong_control"))?;
        let pointer: BtfType = btf.type_by_id(member.ty)?;
        let prototype = types::FuncProto::try_from(pointer.next_type()?).ok()?;
        Some(Self { two_arguments: prototype.len() == 2, tells_start: tells_start(btf)? })
    }
}

fn prepare(
    open: &mut OpenAckademySkel,
    options: &Options,
    Shape { two_arguments, tells_start }: Shape,
) -> libbpf_rs::Result<()> {
    let mut name = [0; NAME_MAX + 1];
    for (to, from) in name.iter_mut().zip(options.name.bytes()) {
        *to = from.cast_signed();
    }
    open.struct_ops.ackademy_mut().name = name;
    open.struct_ops.ackademy_v69_mut().name = name;
    if !options.paced {
        // Without it the kernel reads its own setting, and calls nothing.
        open.struct_ops.ackademy_mut().min_tso_segs = null_mut();
        open.struct_ops.ackademy_v69_mut().min_tso_segs = null_mut();
        open.progs.min_tso_segs.set_autoload(false);
    }
    if tells_start {
        open.struct_ops.ackademy_mut().cwnd_event = null_mut();
    } else {
        open.struct_ops.ackademy_mut().cwnd_event_tx_start = null_mut();
    }
    open.progs.cwnd_event.set_autoload(!tells_start);
    open.progs.tx_start.set_autoload(tells_start);
    if let Some(constants) = &mut open.maps.rodata_data {
        constants.in_kernel = options.in_kernel.is_some().into();
    }
    open.maps.ackademy.set_autocreate(!two_arguments)?;
    open.maps.ackademy_v69.set_autocreate(two_arguments)?;
    open.progs.hand_back.set_autoload(false);
    open.progs.cong_control.set_autoload(!two_arguments);
    open.progs.cong_control_v69.set_autoload(two_arguments);
    open.maps.decisions.set_max_entries(options.slots)?;
    open.maps.flows.set_max_entries(options.slots)?;
    open.maps.free_slots.set_max_entries(options.slots)
}

fn refused(error: &libbpf_rs::Error) -> Error {
    Error::System(format!("the kernel refused the BPF program: {error:#}"))
}
