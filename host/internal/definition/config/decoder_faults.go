package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// decoder collects what one reading of a text finds: faults, warnings, the files that it
// names. [table] and the kinds of [Setting] read the values.
type decoder struct {
	src           *source
	dir           string // what relative paths are relative to
	opt           Options
	unimplemented map[string]string
	known         known
	remote        *remote         // set for what is not the file's
	lenient       bool            // pins that are at fault are to be written anew
	unpinned      map[string]bool // MCP servers whose file of pins is at fault
	faults        Faults
	more          bool              // than faults holds
	absent        map[string]string // what was said of settings without an effect, by path
	warnings      Faults
	// named are the files that settings refer to, and whether agents must not even
	// read them: keys, and what others have said.
	named map[string]bool
}

// refer remembers a file that a setting refers to.
func (d *decoder) refer(full string, private bool) {
	if d.named == nil {
		d.named = map[string]bool{}
	}
	d.named[full] = private || d.named[full]
}

// atKey reports a fault of a key, atValue one of its value.
func (d *decoder) atKey(sp location, message string) *Fault {
	return d.report(sp.node.key, sp.path, message)
}

func (d *decoder) atValue(sp location, message string) *Fault {
	return d.report(sp.node.value, sp.path, message)
}

// maxFaults is how many faults one run collects. Beyond it the work that each
// of them costs, as the search for a similar name, is not done either.
const maxFaults = 1000

// report returns nil beyond maxFaults, which the methods of Fault accept.
func (d *decoder) report(offset int, path, message string) *Fault {
	if len(d.faults) == maxFaults {
		d.more = true
		return nil
	}
	d.faults = append(d.faults, d.src.fault(offset, path, message))
	return &d.faults[len(d.faults)-1]
}

// result is every fault that was reported, in the order of the file.
func (d *decoder) result() Faults {
	faults := slices.DeleteFunc(d.faults, d.isSuperseded).sorted()
	if d.more {
		last := faults[len(faults)-1]
		last.Path, last.Suggestion = "", ""
		last.Message = fmt.Sprintf("more than %d faults; the others are not shown", maxFaults)
		faults = append(faults, last)
	}
	return faults
}

func (d *decoder) warn(sp location, message string) {
	d.warnings = append(d.warnings, d.src.fault(sp.node.key, sp.path, message))
}

func (d *decoder) pos(sp location) Pos {
	line, col := d.src.pos(sp.node.key)
	return Pos{line, col}
}

// needs refuses a setting whose capability this version or the protocol does not have.
// The setting would otherwise be read and have no effect.
func (d *decoder) needs(capability string, sp location) {
	what, missing := d.unimplemented[capability]
	if !missing {
		return
	}
	todo := removeLine
	if capability == "oci" {
		todo = "; use a module on this machine, as in \"file:agents/calc.wasm\"" // a source cannot be left out
	}
	f := d.atKey(sp, what+todo)
	if f == nil {
		return
	}
	if d.absent == nil {
		d.absent = map[string]string{}
	}
	d.absent[sp.path] = f.Message
}

const removeLine = "; remove the line"

// isSuperseded reports whether a fault is of a setting that is to be removed, or lies in
// a table that is: what else is wrong there does not matter.
func (d *decoder) isSuperseded(f Fault) bool {
	if d.remote != nil {
		return false // what is remote is refused for more than one reason
	}
	itself := d.absent[f.Path] == f.Message
	for path := f.Path; path != "" && len(d.absent) > 0; itself = false {
		if d.absent[path] != "" && !itself {
			return true
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return false
}

// kindOf names a TOML value's type for people.
func kindOf(v any) string {
	switch v := v.(type) {
	case string:
		return "a string"
	case int64:
		return "the number " + strconv.FormatInt(v, 10)
	case float64:
		return "the number " + strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return "a boolean"
	case []any:
		return "an array"
	case []map[string]any:
		return "an array of tables"
	case map[string]any:
		return "a table"
	}
	return "a date or time"
}

// neutral reports whether a value means the same as its absence.
func neutral(v any) bool {
	switch v := v.(type) {
	case bool:
		return !v
	case []any:
		return len(v) == 0
	}
	return false
}

// listOf writes alternatives: "a", "b" or "c".
func listOf(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = strconv.Quote(n)
	}
	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + " or " + quoted[last]
}
