package binary

import "fmt"

// Caps are the admission limits of a module; each field is a key under
// [limits.module]. Zero admits none, it does not mean "no limit".
type Caps struct {
	Size            int64 // bytes of the binary
	Functions       int64 // functions defined
	Body            int64 // bytes of one function body
	Locals          int64 // locals of one function, its parameters included; results of one type
	Nesting         int64 // blocks open at once
	BrTable         int64 // labels of one br_table
	Types           int64
	Imports         int64
	Exports         int64
	Globals         int64 // imported and defined
	DataSegments    int64
	ElementSegments int64
	Tables          int64 // imported and defined
	TableElements   int64 // of all tables together, now and after growth
	CompileWork     int64 // estimated nanoseconds of compiling, for each byte of code
}

// DefaultCaps returns the caps for keys that [limits.module] does not set.
func DefaultCaps() Caps {
	return Caps{
		Size:            16 << 20,
		Functions:       50_000,
		Body:            64 << 10,
		Locals:          256,
		Nesting:         1024,
		BrTable:         10_000,
		Types:           10_000,
		Imports:         64,
		Exports:         1024,
		Globals:         10_000,
		DataSegments:    200_000, // std Go writes one per run of non-zero bytes: 37,000 in 3.3 MB
		ElementSegments: 10_000,
		Tables:          4,
		TableElements:   100_000,
		CompileWork:     1000, // real guests: see RATIONALE.md
	}
}

// CapError is why a module is refused that exceeds a cap.
type CapError struct {
	Cap    string // key under [limits.module]
	Got    uint64
	Limit  uint64
	Where  string // "function 12", "type 3", "code, above all function 12", or "" for the module as a whole
	Offset int    // in the binary
}

func (e *CapError) Error() string {
	where := "module"
	if e.Where != "" {
		where = e.Where
	}
	return fmt.Sprintf("%s: %s is %d, at most %d (at byte %d); raise [limits.module] %s to admit it",
		where, e.Cap, e.Got, e.Limit, e.Offset, e.Cap)
}

// FormatError is why a binary is refused that is malformed or uses a feature that skep
// does not admit.
type FormatError struct {
	Offset int
	Reason string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("wasm: %s (at byte %d)", e.Reason, e.Offset)
}
