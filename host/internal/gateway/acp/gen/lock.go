package gen

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"skep/host/internal/gateway/acp/dsl"
)

// Lock has the field numbers of a proto file. A number that was given once is never
// given to something else, also after its field was removed.
type Lock struct {
	paths   []string // in the order of the file
	entries map[string][]lockEntry
}

// lockEntry is the number of a field or of an enum's value.
type lockEntry struct {
	path   string // of the record or enum
	name   string
	number int
	typ    string
	used   bool // in this run
}

// MaxLock is the largest lock file, in bytes.
const MaxLock = 4 << 20

// Bounds of numbers, and the numbers that proto3 keeps for itself.
const (
	maxNumber = 1<<29 - 1
	// maxLocked leaves a number for each field that one file may have.
	maxLocked     = maxNumber - dsl.MaxItems
	firstReserved = 19000
	lastReserved  = 19999
)

// LockFault is a line of a lock file that cannot be right.
type LockFault struct {
	File    string
	Line    int
	Message string
}

// Error gives the place and the reason.
func (f *LockFault) Error() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Message) }

// NewLock is the lock of a file that has none yet.
func NewLock() *Lock { return &Lock{entries: map[string][]lockEntry{}} }

func (l *Lock) add(e lockEntry) {
	if l.entries[e.path] == nil {
		l.paths = append(l.paths, e.path)
	}
	l.entries[e.path] = append(l.entries[e.path], e)
}

// ParseLock reads a lock file: lines of PATH.NAME NUMBER TYPE, and comments after #.
func ParseLock(file, text string) (*Lock, error) {
	l, taken := NewLock(), map[string]bool{}
	if len(text) > MaxLock {
		return nil, &LockFault{file, 1, "the file has more than 4 MiB"}
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		e, ok := parseEntry(line)
		if !ok {
			return nil, &LockFault{file, n, "this line is not RECORD.FIELD NUMBER TYPE; take the file from version control"}
		}
		number, again := fmt.Sprint(e.path, " ", e.number), e.path+"."+e.name+" "+e.typ
		if taken[number] || taken[again] {
			return nil, &LockFault{file, n, "this number or this field is there already; take the file from version control"}
		}
		taken[number], taken[again] = true, true
		l.add(e)
	}
	return l, nil
}

// entryPattern is a line of a lock: its names are as in declarations, and its type is
// one of proto3.
var entryPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.]* [0-9]+ [A-Za-z][A-Za-z0-9_.<>, ]*$`)

func parseEntry(line string) (e lockEntry, ok bool) {
	parts := strings.SplitN(line, " ", 3)
	dot := strings.LastIndex(parts[0], ".")
	if len(parts) < 3 || dot < 1 || dot == len(parts[0])-1 {
		return e, false
	}
	number, err := strconv.Atoi(parts[1])
	e = lockEntry{path: parts[0][:dot], name: parts[0][dot+1:], number: number, typ: parts[2]}
	return e, err == nil && entryPattern.MatchString(line) && number > 0 && number <= maxLocked && (number < firstReserved || number > lastReserved)
}

// String writes the file: as it was read, with what is new at the end of its record.
func (l *Lock) String() string {
	var b strings.Builder
	b.WriteString("# The field numbers of a .proto file. Keep this file beside the declarations and in\n# version control: a number is never given twice.\n")
	for _, path := range l.paths {
		for _, e := range l.entries[path] {
			fmt.Fprintf(&b, "%s.%s %d %s\n", e.path, e.name, e.number, e.typ)
		}
	}
	return b.String()
}

// number is the number of a field: the one it has, else the next of its record. A field
// of another type is another field.
func (l *Lock) number(path, name, typ string) int {
	next := 1
	for i := range l.entries[path] {
		e := &l.entries[path][i]
		if e.name == name && e.typ == typ {
			e.used = true
			return e.number
		}
		next = max(next, e.number+1)
	}
	if next >= firstReserved && next <= lastReserved {
		next = lastReserved + 1
	}
	l.add(lockEntry{path, name, next, typ, true})
	return next
}

// unused are the numbers of a record that no field has any more.
func (l *Lock) unused(path string) (all []lockEntry) {
	for _, e := range l.entries[path] {
		if !e.used {
			all = append(all, e)
		}
	}
	return all
}
