// The boundary itself: what a module imports. abi/ABI.md, section 4, is its
// documentation; Turn is what agents use.

// @ts-ignore: decorator
@external("skep_v1", "input_read")
export declare function input_read(off: u32, ptr: usize, cap: u32): i32;

// @ts-ignore: decorator
@external("skep_v1", "output_write")
export declare function output_write(ptr: usize, len: u32): i32;

// @ts-ignore: decorator
@external("skep_v1", "call")
export declare function call(op: i32, req: usize, reqLen: u32, rsp: usize, rspCap: u32): i64;

// @ts-ignore: decorator
@external("skep_v1", "submit")
export declare function submit(op: i32, req: usize, reqLen: u32): i64;

// @ts-ignore: decorator
@external("skep_v1", "wait")
export declare function wait(handles: usize, n: u32, timeoutMs: i32): i32;

// @ts-ignore: decorator
@external("skep_v1", "read")
export declare function read(handle: i32, ptr: usize, cap: u32): i64;

// @ts-ignore: decorator
@external("skep_v1", "close")
export declare function close(handle: i32): i32;

// @ts-ignore: decorator
@external("skep_v1", "abort")
export declare function host_abort(code: i32, ptr: usize, len: u32): void;

// @ts-ignore: decorator
@external("wasi_snapshot_preview1", "clock_time_get")
export declare function clock_time_get(clock: u32, precision: u64, nanoseconds: usize): i32;

// @ts-ignore: decorator
@external("wasi_snapshot_preview1", "poll_oneoff")
export declare function poll_oneoff(subscriptions: usize, events: usize, n: u32, ready: usize): i32;
