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
)

// Expect is what a reader of a log knows besides the log.
type Expect struct {
	// Prev is the hash of the entry before the first that is there; empty
	// means that the log begins with its first entry.
	Prev string
	// Head is the hash of an entry that must be there: without it nobody can
	// see that entries were cut off the end.
	Head string
}

// Report is what was verified.
type Report struct {
	// Entries are those from First to Last.
	Entries, First, Last int64
	// Repairs is how many of them tell that the log did not end as it should,
	// as after a crash.
	Repairs int64
	// Head is the hash of the last one.
	Head string
}

// Damage is a place where a log is not as it was written.
type Damage struct {
	File string
	// Line is counted from 1; 0 means the whole file.
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

// Verify reads the log at path, and the files that were put away beside it, from
// the first entry to the last. It may be in use. An error that is a *[Damage]
// tells the first place where it is not whole; a log without an entry is not.
func Verify(path string, expect Expect) (Report, error) {
	v := verifier{expect: expect, each: func(line) {}}
	if err := v.all(path); err != nil {
		return Report{}, err
	}
	return v.report()
}

// Entries hands on all entries of a log that are as they were written, oldest first.
// Broken, which may be nil, is told in between of each place where the log is not
// whole: of lines that cannot be read one after the other, of the first. It returns
// the first place as an error, which is a *[Damage].
func Entries(path string, each func(seq int64, e Entry), broken func(*Damage)) error {
	var first error
	v := verifier{each: func(l line) { each(l.Seq, l.entry()) }, anyStart: true}
	v.broken = func(d *Damage) {
		if first == nil {
			first = d
		}
		if broken != nil {
			broken(d)
		}
	}
	if err := v.all(path); err != nil {
		return err
	}
	return first
}

// verifier walks a log.
type verifier struct {
	expect   Expect
	anyStart bool
	each     func(line)
	// broken is told of damage; without it, damage ends the walk.
	broken func(*Damage)
	// lost is behind a line that cannot be read: nobody knows what follows it.
	lost bool

	begun bool
	first int64
	end   chain
	seen  bool // expect.Head

	repairs int64
}

func (v *verifier) report() (Report, error) {
	if v.expect.Head != "" && !v.seen {
		return Report{}, &Damage{File: "the log", Reason: "no entry has the hash " + v.expect.Head + ": entries were cut off its end"}
	}
	if !v.begun {
		return Report{}, &Damage{File: "the log", Reason: "it has no entry, and a host writes one when it starts"}
	}
	return Report{v.end.seq - v.first + 1, v.first, v.end.seq, v.repairs, v.end.head}, nil
}

// all opens the file in use first: one that is put away meanwhile is the same
// file still.
func (v *verifier) all(path string) error {
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
		return fmt.Errorf("there is no audit log: %w", err)
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
		if err := v.file(f); err != nil {
			return err
		}
	}
	return nil
}

// openRegular opens a file and nothing else: a pipe would never end, and a device
// has no entries to miss.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file; give the audit log itself, or a copy of it", path)
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

// file reads the lines of one file, as many as there were when no writer was in
// the middle of one.
func (v *verifier) file(f *os.File) error {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH); err != nil {
		return err
	}
	info, err := f.Stat()
	if err = errors.Join(err, syscall.Flock(int(f.Fd()), syscall.LOCK_UN)); err != nil {
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
		if err := v.next(f.Name(), n, bytes.TrimSuffix(text, []byte{'\n'}), reason); err != nil {
			return err
		}
	}
}

// skipLine leaves out the rest of a line.
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

// next takes a line, or the reason why there is none to read.
func (v *verifier) next(file string, n int, text []byte, reason string) error {
	var l line
	var hash string
	if reason == "" {
		var err error
		if l, hash, err = parse(text); err != nil {
			reason = err.Error()
		}
	}
	readable := reason == ""
	if readable && !v.lost {
		reason = v.follows(l)
	}
	if reason != "" {
		damage := &Damage{file, n, reason}
		if v.broken == nil {
			return damage
		}
		if !v.lost {
			v.broken(damage)
		}
	}
	if v.lost = !readable; readable {
		v.take(l, hash)
	}
	return nil
}

// follows says why a line is not the one that comes next.
func (v *verifier) follows(l line) string {
	switch {
	case !v.begun:
		return v.begin(l)
	case l.Seq != v.end.seq+1:
		return fmt.Sprintf("entry %d follows entry %d: lines were removed, inserted or moved", l.Seq, v.end.seq)
	case l.Prev != v.end.head:
		return fmt.Sprintf("entry %d does not follow the entry %d that is there: one of them was replaced", l.Seq, v.end.seq)
	}
	return ""
}

func (v *verifier) take(l line, hash string) {
	if !v.begun {
		v.begun, v.first = true, l.Seq
	}
	v.end = chain{l.Seq, hash}
	v.seen = v.seen || hash == v.expect.Head
	if l.Act == repair {
		v.repairs++
	}
	v.each(l)
}

// begin says why a line cannot be the first.
func (v *verifier) begin(l line) string {
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
