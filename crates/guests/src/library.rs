//! Loads a library and finds the functions of `ackademy.h` in it.
use crate::abi::{ABI, Answer, Flow, RawController, size_of_record};
use ackademy::control::{Ack, FlowInfo, Loss, PacketEvent, Send};
use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Arc;

type New = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const Flow,
    *mut c_char,
    usize,
) -> *mut RawController;
type Free = unsafe extern "C" fn(*mut RawController);
type Tell<T> = unsafe extern "C" fn(*mut RawController, u32, T, *mut Answer) -> i32;
type Ask = unsafe extern "C" fn(*mut RawController, u32, *mut Answer) -> i32;

/// A loaded library; it stays loaded, because its code may have started what needs it.
pub struct Library {
    new: New,
    pub(crate) free: Free,
    pub(crate) on_ack: Tell<*const Ack>,
    pub(crate) on_loss: Tell<*const Loss>,
    pub(crate) on_send: Option<Tell<*const Send>>,
    pub(crate) on_timer: Option<Tell<u64>>,
    pub(crate) on_packet:
        Option<unsafe extern "C" fn(*mut RawController, u32, *const PacketEvent) -> i32>,
    pub(crate) wants_packets: Option<unsafe extern "C" fn(*const RawController, u32) -> i32>,
    pub(crate) control: Ask,
    names: Vec<String>,
}

impl Library {
    /// Loads a library by its path; what it runs when it is loaded runs.
    ///
    /// # Errors
    ///
    /// If it cannot be loaded, lacks a function, or was compiled for another ABI; one line, which names the file.
    pub fn open(path: &Path) -> Result<Arc<Self>, String> {
        let file = path.display();
        // SAFETY: whoever names the path vouches for what the library does, as for any program.
        let library = unsafe { libloading::Library::new(path) }
            .map_err(|error| format!("{file}: no library that can be loaded ({error})"))?;
        let library: &'static libloading::Library = Box::leak(Box::new(library));
        // SAFETY: `ackademy_abi` has had this type in every version of the header.
        let abi: unsafe extern "C" fn() -> u32 =
            unsafe { required(library, path, "ackademy_abi") }?;
        let abi = unsafe { abi() };
        if abi != ABI {
            return Err(format!("{file}: its ABI is {abi}; allowed is {ABI}: `make guests`"));
        }
        // SAFETY: the header of this ABI declares these types.
        unsafe { Self::functions(library, path) }.map(Arc::new)
    }

    unsafe fn functions(
        library: &'static libloading::Library,
        path: &Path,
    ) -> Result<Self, String> {
        unsafe {
            let sizeof: unsafe extern "C" fn(u32) -> usize =
                required(library, path, "ackademy_sizeof")?;
            if !(0..5).all(|record| sizeof(record) == size_of_record(record)) {
                let file = path.display();
                return Err(format!("{file}: its records have other sizes: `make guests`"));
            }
            let names: unsafe extern "C" fn() -> *const c_char =
                required(library, path, "ackademy_names")?;
            let names = CStr::from_ptr(names()).to_string_lossy();
            Ok(Self {
                new: required(library, path, "ackademy_new")?,
                free: required(library, path, "ackademy_free")?,
                on_ack: required(library, path, "ackademy_on_ack")?,
                on_loss: required(library, path, "ackademy_on_loss")?,
                on_send: find(library, "ackademy_on_send"),
                on_timer: find(library, "ackademy_on_timer"),
                on_packet: find(library, "ackademy_on_packet"),
                wants_packets: find(library, "ackademy_wants_packets"),
                control: required(library, path, "ackademy_control")?,
                names: names.split(',').map(str::to_owned).collect(),
            })
        }
    }

    /// Names of its controllers.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// `None` if there is no such controller, or none for this flow.
    pub(crate) fn make(&self, name: &str, flow: &FlowInfo) -> Option<NonNull<RawController>> {
        flow.checked().ok()?;
        let (name, flow) = (CString::new(name).ok()?, Flow::from(flow));
        // SAFETY: the pointers are valid for the call, and NULL is allowed for the others.
        NonNull::new(unsafe {
            (self.new)(name.as_ptr(), ptr::null(), &raw const flow, ptr::null_mut(), 0)
        })
    }
}

/// # Safety
///
/// The function has the type `T`.
unsafe fn find<T: Copy>(library: &'static libloading::Library, name: &str) -> Option<T> {
    unsafe { library.get::<T>(name) }.ok().map(|symbol| *symbol)
}

/// # Safety
///
/// As [`find`].
unsafe fn required<T: Copy>(
    library: &'static libloading::Library,
    path: &Path,
    name: &str,
) -> Result<T, String> {
    unsafe { find(library, name) }.ok_or_else(|| format!("{}: it lacks {name}", path.display()))
}
