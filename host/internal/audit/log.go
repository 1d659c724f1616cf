package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Name is the name of the log in a data directory.
const Name = "audit.log"

// Options of [Open]. The zero value is usable.
type Options struct {
	// MaxSize is how large a file grows, in bytes, before the next is begun,
	// 16 MiB by default.
	MaxSize int64
	// Every is how often refusals are written, a second by default.
	Every  time.Duration
	Now    func() time.Time
	Logger *slog.Logger
}

// ErrClosed says that the log is closed.
var ErrClosed = errors.New("the audit log is closed")

// Log is an open audit log. Its methods are safe for concurrent use.
type Log struct {
	path     string
	opt      Options
	refusals refusals
	trouble  trouble

	mu sync.Mutex
	// file is nil when the log is closed.
	file *os.File
	// size is where our last line ended, and end what it was.
	size int64
	end  chain
}

// Open opens the log at path, making it when it is missing. What a crash has
// left of a line at its end is set aside, which becomes the next entry. Whole lines
// there that are not as they were written stay, so that [Verify] finds them, and
// become an entry as well.
func Open(path string, opt Options) (*Log, error) {
	if opt.MaxSize <= 0 {
		opt.MaxSize = 16 << 20
	}
	if opt.Every <= 0 {
		opt.Every = time.Second
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Log{path: path, opt: opt, refusals: newRefusals()}
	file, err := l.open()
	if err != nil {
		return nil, err
	}
	l.file, l.size = file, -1
	if err := l.write(nil); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return l, nil
}

func (l *Log) open() (*os.File, error) {
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	return f, nil
}

// Record writes an entry and returns when it is on the disk.
func (l *Log) Record(e Entry) error {
	err := l.write([]Entry{e})
	if err != nil {
		l.trouble.missed.Add(1)
	}
	return err
}

// Head returns the number of the last entry that this process has seen, and its
// hash. Kept elsewhere, it shows later whether entries were cut off the end.
func (l *Log) Head() (seq int64, hash string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end.seq, l.end.head
}

// Close writes what [Log.Refused] was told and gives the file free.
func (l *Log) Close() error {
	l.refusals.last()
	err := l.flush()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err = errors.Join(err, l.file.Close())
	l.file = nil
	return err
}

// write appends entries in one piece. Without any it only finds the end.
func (l *Log) write(entries []Entry) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() { l.note(err) }()
	if l.file == nil {
		return ErrClosed
	}
	unlock, err := l.lock()
	if err != nil {
		return fmt.Errorf("audit log %s: %w", l.path, err)
	}
	defer unlock()
	if err := l.append(entries); err != nil {
		return fmt.Errorf("audit log %s: %w", l.path, err)
	}
	return nil
}

// lock takes the file that is at the path now, and learns what others have
// written to it.
func (l *Log) lock() (unlock func(), err error) {
	for {
		if err := syscall.Flock(int(l.file.Fd()), syscall.LOCK_EX); err != nil {
			return nil, err
		}
		free := func() { _ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN) }
		mine, err := l.file.Stat()
		if err != nil {
			free()
			return nil, err
		}
		there, err := os.Stat(l.path)
		if err == nil && os.SameFile(mine, there) {
			if err := l.catchUp(mine.Size()); err != nil {
				free()
				return nil, err
			}
			if l.size < l.opt.MaxSize || l.taken() {
				return free, nil
			}
			err = l.putAway()
		}
		free()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err := l.reopen(); err != nil {
			return nil, err
		}
	}
}

func (l *Log) reopen() error {
	f, err := l.open()
	if err != nil {
		return err
	}
	err = l.file.Close()
	l.file, l.size = f, -1
	return err
}

// append encodes and writes under the file's lock. What was written in part is
// taken back, so that the disk holds whole lines.
func (l *Log) append(entries []Entry) error {
	if len(entries) == 0 {
		return nil
	}
	end, text := l.end, []byte(nil)
	for _, e := range entries {
		if e.Time.IsZero() {
			e.Time = l.opt.Now()
		}
		text = append(text, end.next(e)...)
	}
	if _, err := l.file.Write(text); err != nil {
		return errors.Join(err, l.file.Truncate(l.size))
	}
	l.end, l.size = end, l.size+int64(len(text))
	return l.file.Sync()
}

// taken reports whether the name that the file would get is another's, as after
// the log was begun anew. It then grows on: nothing may be overwritten.
func (l *Log) taken() bool {
	_, err := os.Lstat(keptName(l.path, l.end.seq))
	return err == nil
}

// putAway gives a full file a name of its own: that of its last entry.
func (l *Log) putAway() error {
	if err := os.Rename(l.path, keptName(l.path, l.end.seq)); err != nil {
		return err
	}
	return syncDir(filepath.Dir(l.path))
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
