package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"skep/host/internal/filelock"
)

// Expect is what a verifier knows from elsewhere.
type Expect struct {
	// Prev is the hash of the entry before the first; empty means that the log
	// must begin with entry 1.
	Prev string
	// Head is the hash of an entry that must exist: without it, a log that was
	// cut off at its end still verifies.
	Head string
	// Partial means that the log may begin with any entry, unless Prev is given: its
	// oldest files are removed.
	Partial bool
}

// Report is the result of a verification.
type Report struct {
	// Entries is their number, First and Last the numbers of the first and the
	// last.
	Entries, First, Last int64
	// Repairs counts the entries about a damaged end, as after a crash.
	Repairs int64
	// Head is the hash of the last entry.
	Head string
}

// Damage is a place where a log does not verify.
type Damage struct {
	File string
	// Line counts from 1; 0 means the whole file.
	Line   int
	Reason string
}

// Error names the place.
func (d *Damage) Error() string {
	if d.Line == 0 {
		return d.File + ": " + d.Reason
	}
	return fmt.Sprintf("%s:%d: %s", d.File, d.Line, d.Reason)
}

// Verify reads the log at path and its rotated files from the first entry to the
// last. The log may be in use. A *[Damage] is the first place that does not
// verify; a log without entries is damaged.
func Verify(path string, expect Expect) (Report, error) {
	v := verifier{expect: expect, onEntry: func(line) {}, anyStart: expect.Partial && expect.Prev == ""}
	if err := v.verifyFiles(path); err != nil {
		return Report{}, err
	}
	return v.report()
}

// Entries calls each for every entry that verifies, oldest first. In between it
// calls broken, which may be nil, for each damage; of several unreadable lines in
// a row, for the first. It returns the first *[Damage].
func Entries(path string, each func(seq int64, e Entry), broken func(*Damage)) error {
	var first error
	v := verifier{onEntry: func(l line) { each(l.Seq, l.entry()) }, anyStart: true}
	v.onDamage = func(d *Damage) {
		if first == nil {
			first = d
		}
		if broken != nil {
			broken(d)
		}
	}
	if err := v.verifyFiles(path); err != nil {
		return err
	}
	return first
}

// verifier reads a log.
type verifier struct {
	expect   Expect
	anyStart bool
	onEntry  func(line)
	// onDamage gets damage; nil ends the walk at the first.
	onDamage func(*Damage)
	// afterUnreadable is set after an unreadable line, whose successor cannot be
	// checked.
	afterUnreadable bool

	started bool
	first   int64
	end     chainEnd
	seen    bool // expect.Head

	repairs int64
}

func (v *verifier) report() (Report, error) {
	if v.expect.Head != "" && !v.seen {
		return Report{}, &Damage{File: "the log", Reason: "no entry has the hash " + v.expect.Head + ": entries were cut off its end"}
	}
	if !v.started {
		return Report{}, &Damage{File: "the log", Reason: "it has no entry, and a host writes one when it starts"}
	}
	return Report{v.end.seq - v.first + 1, v.first, v.end.seq, v.repairs, v.end.head}, nil
}

// verifyFiles opens the current file first: if it is rotated meanwhile, the open
// file stays the same.
func (v *verifier) verifyFiles(path string) error {
	files := []*os.File{}
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	current, err := openRegular(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	kept, listErr := keptFiles(path)
	if listErr != nil {
		return listErr
	}
	if err != nil && len(kept) == 0 {
		return fmt.Errorf("there is no log: %w", err)
	}
	for _, name := range kept {
		f, err := openRegular(name)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	if current != nil {
		files = append(files, current)
	}
	for i, f := range files {
		if i > 0 && i == len(files)-1 && sameFile(f, files[i-1]) {
			break
		}
		if err := v.verifyFile(f); err != nil {
			return err
		}
	}
	return nil
}

// openRegular opens regular files only: a pipe would never end, and a device has
// no entries.
func openRegular(path string) (*os.File, error) {
	f, err := filelock.Open(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file; give the log itself, or a copy of it", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func sameFile(a, b *os.File) bool {
	x, err := a.Stat()
	y, err2 := b.Stat()
	return err == nil && err2 == nil && os.SameFile(x, y)
}

// verifyFile reads the lines that a file held while no writer had it locked.
func (v *verifier) verifyFile(f *os.File) error {
	if err := filelock.Shared(f); err != nil {
		return err
	}
	info, err := f.Stat()
	if err = errors.Join(err, filelock.Unlock(f)); err != nil {
		return err
	}
	in := bufio.NewReaderSize(io.LimitReader(f, info.Size()), maxLine)
	for n := 1; ; n++ {
		text, err := in.ReadSlice('\n')
		reason := ""
		switch {
		case errors.Is(err, io.EOF) && len(text) == 0:
			return nil
		case errors.Is(err, io.EOF):
			reason = "the last line is cut off; the next start of a host sets it aside"
		case errors.Is(err, bufio.ErrBufferFull):
			if err := skipLine(in); err != nil {
				return err
			}
			reason = fmt.Sprintf("the line has more than %d bytes", maxLine)
		case err != nil:
			return err
		}
		if err := v.verifyLine(f.Name(), n, bytes.TrimSuffix(text, []byte{'\n'}), reason); err != nil {
			return err
		}
	}
}

// skipLine skips the rest of a line.
func skipLine(in *bufio.Reader) error {
	for {
		_, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// verifyLine verifies a line, or handles the reason why it cannot be read.
func (v *verifier) verifyLine(file string, n int, text []byte, reason string) error {
	var l line
	var hash string
	if reason == "" {
		var err error
		if l, hash, err = parse(text); err != nil {
			reason = err.Error()
		}
	}
	readable := reason == ""
	if readable && !v.afterUnreadable {
		reason = v.checkSequence(l)
	}
	if reason != "" {
		damage := &Damage{file, n, reason}
		if v.onDamage == nil {
			return damage
		}
		if !v.afterUnreadable {
			v.onDamage(damage)
		}
	}
	if v.afterUnreadable = !readable; readable {
		v.accept(l, hash)
	}
	return nil
}

// checkSequence returns why a line does not follow the previous one, or "".
func (v *verifier) checkSequence(l line) string {
	switch {
	case !v.started:
		return v.checkFirst(l)
	case l.Seq != v.end.seq+1:
		return fmt.Sprintf("entry %d follows entry %d: lines were removed, inserted or moved", l.Seq, v.end.seq)
	case l.Prev != v.end.head:
		return fmt.Sprintf("entry %d does not follow the entry %d that is there: one of them was replaced", l.Seq, v.end.seq)
	}
	return ""
}

func (v *verifier) accept(l line, hash string) {
	if !v.started {
		v.started, v.first = true, l.Seq
	}
	v.end = chainEnd{l.Seq, hash}
	v.seen = v.seen || hash == v.expect.Head
	if l.Act == actRepair {
		v.repairs++
	}
	v.onEntry(l)
}

// checkFirst returns why a line cannot be the first, or "".
func (v *verifier) checkFirst(l line) string {
	switch {
	case v.anyStart:
		return ""
	case v.expect.Prev != "" && l.Prev != v.expect.Prev:
		return fmt.Sprintf("entry %d does not follow the entry with the hash %s", l.Seq, v.expect.Prev)
	case v.expect.Prev == "" && (l.Seq != 1 || l.Prev != genesis):
		return fmt.Sprintf("the log begins with entry %d; the files with those before it are missing: give the hash of the last of them, or put them back", l.Seq)
	}
	return ""
}
