//! The boundary itself: what a module imports. abi/ABI.md, section 4, is its
//! documentation; [`Turn`](crate::Turn) is what agents use.
#![allow(missing_docs)]

#[link(wasm_import_module = "skep_v1")]
extern "C" {
    pub fn input_read(off: u32, ptr: *mut u8, cap: u32) -> i32;
    pub fn output_write(ptr: *const u8, len: u32) -> i32;
    pub fn call(op: i32, req: *const u8, req_len: u32, rsp: *mut u8, rsp_cap: u32) -> i64;
    pub fn submit(op: i32, req: *const u8, req_len: u32) -> i64;
    pub fn wait(handles: *const i32, n: u32, timeout_ms: i32) -> i32;
    pub fn read(handle: i32, ptr: *mut u8, cap: u32) -> i64;
    pub fn close(handle: i32) -> i32;
    pub fn abort(code: i32, ptr: *const u8, len: u32);
}

#[link(wasm_import_module = "wasi_snapshot_preview1")]
extern "C" {
    pub fn clock_time_get(clock: u32, precision: u64, nanoseconds: *mut u64) -> u16;
    pub fn poll_oneoff(subscriptions: *const u64, events: *mut u64, n: u32, ready: *mut u32) -> u16;
}
