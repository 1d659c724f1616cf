// Package abi owns the contract between the host and an agent module: the
// names of exports and imports, the op table with its classes, the closed set
// of error codes, and the JSON shapes that cross the boundary. ABI.md is the
// same contract in prose, written for people who implement it in another
// language. The package must not know how a module is run or what an op does.
package abi

// Version is the ABI version this host speaks. A module names its version by
// exporting the marker function for it, see [MarkerPrefix].
const Version = 1

// ImportModule is the import module under which the host offers its functions
// to a guest of ABI version 1.
const ImportModule = "skep_v1"

// ReservedPrefix starts every name that belongs to the metering rewriter. A
// guest that imports or exports such a name is refused.
const ReservedPrefix = "__skep"

// DescriptorSection is the custom section that may hold the module's
// descriptor, so that it can be read without running the module.
const DescriptorSection = "skep.descriptor"

// Names a guest exports.
const (
	ExportMemory     = "memory"
	ExportInitialize = "_initialize"
	ExportDescribe   = "skep_describe"
	ExportTurn       = "skep_turn"
	ExportAction     = "skep_action"
	ExportWarm       = "skep_warm"

	// MarkerPrefix and a decimal version make the marker export, for
	// instance skep_abi_v1. It is never called.
	MarkerPrefix = "skep_abi_v"
)

// Names the host offers under [ImportModule].
const (
	ImportInputRead   = "input_read"
	ImportOutputWrite = "output_write"
	ImportCall        = "call"
	ImportSubmit      = "submit"
	ImportWait        = "wait"
	ImportRead        = "read"
	ImportClose       = "close"
	ImportAbort       = "abort"
)

// Status is what a guest's turn, action, describe or warm function returns.
type Status int32

// The statuses of ABI version 1; every other value counts as StatusError.
const (
	StatusOK             Status = 0
	StatusError          Status = 1
	StatusNotImplemented Status = 2
)
