// Package binary owns the format of Wasm binaries: it reads them, refuses the
// modules that skep cannot run safely, and rewrites the others so that they can be
// stopped. The format is https://webassembly.github.io/spec/core/binary/. It must not know wazero, the ABI, files, or the clock; the same bytes
// and the same caps give the same answer everywhere. It starts no goroutines.
//
// [Admit] is the first reader of an untrusted module. It accepts the core
// language up to Wasm 2.0 (multi-value, sign extension, saturating conversion,
// bulk memory, reference types, 128-bit SIMD) and nothing after it. Each count
// is compared with its cap and with the bytes that are left before anything is
// allocated. Admit checks the number of operands
// everywhere, but not their *types*: the engine does that afterwards.
//
// [Module.Meter] writes the module again with a fuel counter, a stack counter,
// capped tables and every mutable global exported, for images. Its output
// needs the same features of the engine as its input, and multi-value.
//
// # Fuel
//
// Fuel is counted in units. An instruction is one unit, except:
//
//   - block, loop, else, end and nop make no machine code and are free;
//   - call is 4 and call_indirect 6; integer division and remainder 8; float
//     division and square root 4, of a vector 8; ref.func 64;
//   - memory.fill, memory.copy, memory.init and the same three for tables are 16
//     plus a sixteenth of the bytes moved (a table element is 8 bytes);
//   - memory.grow and table.grow are 64 plus, where they succeed, a sixteenth of
//     the bytes added.
//
// Units are taken in advance, at charge points: the entry of a function, the
// header of a loop, behind a loop, and inside longer code. A charge point takes
// the units of the *longest* path that leads from it to the next charge point or
// to the end of the function, whichever path the guest then takes. So fuel is
// never less than what was executed, and no charge but those by length is larger
// than a few hundred units: a loop of ten instructions inside a function of ten
// thousand pays for its neighbourhood, not for the function. The amount depends
// on the module and on the way through it, never on the machine or on the size of
// a slice: the same execution has the same total. (Measured on std Go: 1.7 to 3.6
// times the instructions executed.)
//
// A charge subtracts first and compares afterwards: the slice may go below zero, by
// at most MaxCharge, and then __skep.tick is called. The host *adds* to the
// global, so that the debt is paid and the total stays exact,
//
//	used = Options.Slice + granted - __skep_slice
//
// and kills the guest (by a panic in tick) where the global stays below zero. Any
// grant of [MaxCharge] or more is enough. tick may be called while the module is
// being instantiated, by its start function.
//
// # Stack
//
// A function that contains a call takes its frame from __skep_stack at its entry
// and gives it back at its end; below zero, __skep.overflow is called, which
// must not return. See frame.go for the size of a frame. A guest that was killed
// or has trapped leaves both counters as they were and must not be called again.
package binary

// Version names the rewriter in cache keys and journals. It changes whenever the
// output of Meter or the fuel of any execution changes.
const Version = "1"

// Names that Meter adds. Admit refuses a guest that uses the prefix.
const (
	ReservedPrefix = "__skep"
	HostModule     = "__skep"       // module of the two added imports, both () -> ()
	HostTick       = "tick"         // called when the slice is below zero
	HostOverflow   = "overflow"     // called when the stack is below zero; must panic
	GlobalSlice    = "__skep_slice" // mutable i64: units left in this slice
	GlobalStack    = "__skep_stack" // mutable i64: bytes of stack left
	GlobalPrefix   = "__skep_g"     // + decimal: see Module.MutableGlobals
)

// MaxCharge is the largest number of units that one charge takes, and so a grant
// that always pays the debt.
const MaxCharge = 5000

// DefaultStack is the stack budget of a module metered without another one.
const DefaultStack = 8 << 20
