package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"skep/host/internal/filelock"
)

// window is how many bytes of a file's end are searched for its last whole line.
const window = 1 << 20

// errNoEnd is returned when the end of the file cannot be found.
var errNoEnd = fmt.Errorf("the last %d bytes hold no whole line; `skep audit verify` tells more; move the file elsewhere to begin a new log", window)

// fileEnd describes the end of a file.
type fileEnd struct {
	// last is its last line that verifies.
	last chainEnd
	// good is the offset after that line, whole the offset after the last
	// complete line, which may not verify. A crash leaves no lines between the
	// two.
	good, whole int64
}

// catchUp finds the end of the file when another process has written. The caller
// holds the file's lock.
func (l *Log) catchUp(size int64) error {
	if size == l.size {
		return nil
	}
	end, err := readEnd(l.file, size)
	if err != nil {
		return err
	}
	if end.good == 0 {
		if end.last, err = l.previousEnd(); err != nil {
			return err
		}
	}
	known := l.last
	l.size, l.last = end.whole, end.last
	if end.whole < size {
		if err := l.setAside(end.whole, size); err != nil {
			return err
		}
	}
	if end.good < end.whole {
		if err := l.recordDamage(end); err != nil {
			return err
		}
	}
	if known.seq <= end.last.seq {
		return nil
	}
	reason := fmt.Sprintf("the entries from %d on were gone; the last of them was %d with the hash %s", end.last.seq+1, known.seq, known.head)
	l.opt.Logger.Error("the audit log was cut while it was in use", "last", known.seq, "found", end.last.seq)
	return l.append([]Entry{{Act: actRepair, Outcome: Done, Reason: reason}})
}

// readEnd finds the last line that verifies. A file without one ends at 0.
func readEnd(f io.ReaderAt, size int64) (end fileEnd, err error) {
	from := max(0, size-window)
	text := make([]byte, size-from)
	if _, err := f.ReadAt(text, from); err != nil && !errors.Is(err, io.EOF) {
		return end, err
	}
	text = text[:wholeLines(text)]
	end.whole = from + int64(len(text))
	for {
		stop := bytes.LastIndexByte(text, '\n')
		if stop < 0 {
			break
		}
		start := bytes.LastIndexByte(text[:stop], '\n') + 1
		if start > 0 || from == 0 {
			if l, hash, err := parse(text[start:stop]); err == nil {
				end.last, end.good = chainEnd{l.Seq, hash}, from+int64(stop)+1
				return end, nil
			}
		}
		text = text[:start]
	}
	if from > 0 {
		return end, errNoEnd
	}
	return end, nil
}

// wholeLines returns the length of what a crash cannot have left: all up to the
// last newline, without lines that hold zero bytes. No entry holds one; some file
// systems leave them where nothing was written yet.
func wholeLines(text []byte) int {
	n := bytes.LastIndexByte(text, '\n') + 1
	for n > 0 {
		start := bytes.LastIndexByte(text[:n-1], '\n') + 1
		if bytes.IndexByte(text[start:n], 0) < 0 {
			break
		}
		n = start
	}
	return n
}

// recordDamage records that complete lines do not verify. They stay in the file,
// so that [Verify] reports them from then on.
func (l *Log) recordDamage(end fileEnd) error {
	reason := fmt.Sprintf("%d bytes after entry %d are not as they were written; they are left where they are", end.whole-end.good, end.last.seq)
	l.opt.Logger.Error("the end of the audit log is not as it was written; `skep audit verify` tells where", "after", end.last.seq, "bytes", end.whole-end.good)
	return l.append([]Entry{{Act: actRepair, Outcome: Failed, Reason: reason}})
}

// previousEnd returns the end of the last rotated file, for an empty current one.
func (l *Log) previousEnd() (chainEnd, error) {
	kept, err := keptFiles(l.path)
	if err != nil || len(kept) == 0 {
		return chainEnd{head: genesis}, err
	}
	last := kept[len(kept)-1]
	f, err := os.Open(last)
	if err != nil {
		return chainEnd{}, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return chainEnd{}, err
	}
	end, err := readEnd(f, info.Size())
	if err == nil && end.good != info.Size() {
		err = fmt.Errorf("%s does not end with a whole line", last)
	}
	return end.last, err
}

// setAside moves a torn line to a file of its own and records that.
func (l *Log) setAside(good, size int64) error {
	torn := make([]byte, size-good)
	if _, err := l.file.ReadAt(torn, good); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(l.path), fmt.Sprintf("%s.torn-%d-*", filepath.Base(l.path), l.last.seq+1))
	if err != nil {
		return err
	}
	_, err = f.Write(torn)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := filelock.Truncate(l.file, good); err != nil {
		return err
	}
	reason := fmt.Sprintf("%d bytes after the last whole line are set aside", len(torn))
	l.opt.Logger.Warn("the audit log had a torn end", "bytes", len(torn), "kept_in", f.Name())
	return l.append([]Entry{{Act: actRepair, Outcome: Done, Target: filepath.Base(f.Name()), Reason: reason}})
}

// keptName is the name of a rotated file whose last entry has the number seq.
func keptName(path string, seq int64) string {
	return fmt.Sprintf("%s-%015d%s", strings.TrimSuffix(path, filepath.Ext(path)), seq, filepath.Ext(path))
}

// keptFiles lists the rotated files, oldest first.
func keptFiles(path string) ([]string, error) {
	dir, name := filepath.Split(path)
	names, err := os.ReadDir(filepath.Clean(dir + "."))
	if err != nil {
		return nil, err
	}
	first := keptName(name, 0)
	var kept []string
	for _, n := range names {
		if len(n.Name()) == len(first) && strings.Trim(n.Name(), "0123456789") != "" && sameBut(n.Name(), first) {
			kept = append(kept, filepath.Join(dir, n.Name()))
		}
	}
	slices.Sort(kept)
	return kept, nil
}

// sameBut reports whether two names of one length differ in digits only.
func sameBut(a, b string) bool {
	isDigit := func(c byte) bool { return c >= '0' && c <= '9' }
	for i := range len(a) {
		if a[i] != b[i] && !(isDigit(a[i]) && isDigit(b[i])) {
			return false
		}
	}
	return true
}
