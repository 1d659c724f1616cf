package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// export writes JSON lines, to a file or as data. A file that has some already
// is gone on with.
type export struct {
	out *bufio.Writer
	// file is nil where the lines are data.
	file *os.File
	// labels stand in each line, to identify the export.
	labels exportLabels
	// last is the place of the last line there was, 0 for none.
	last int64
	n    int
}

// exportLabels identify what a file is an export of.
type exportLabels struct {
	Task  string `json:"task_id"`
	Agent string `json:"agent,omitempty"`
}

// openExport begins an export to a file, or to stdout if it is empty. The place
// of a line is its member id or seq.
func (a *app) openExport(path string, head exportLabels) (*export, error) {
	if path == "" {
		return &export{out: bufio.NewWriter(a.env.Stdout), labels: head}, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	x := &export{out: bufio.NewWriter(f), file: f, labels: head}
	if err := x.resume(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return x, nil
}

// resume finds the last whole line of a file and drops what is behind it.
func (x *export) resume() error {
	var last []byte
	end := int64(0)
	for r := bufio.NewReader(x.file); ; {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		last, end = line, end+int64(len(line))
	}
	if info, err := x.file.Stat(); err != nil {
		return err
	} else if last == nil && info.Size() > 0 || last != nil && !x.readPosition(last) {
		what := "events of task " + x.labels.Task
		if x.labels.Agent != "" {
			what = "the history of " + x.labels.Agent + " in task " + x.labels.Task
		}
		return usagef("%s holds something else than %s", x.file.Name(), what).help("name a new file")
	}
	if err := x.file.Truncate(end); err != nil {
		return err
	}
	_, err := x.file.Seek(end, io.SeekStart)
	return err
}

// readPosition reads the place of a line, if it belongs to this export.
func (x *export) readPosition(line []byte) bool {
	var place struct {
		exportLabels
		ID  int64 `json:"id"`
		Seq int64 `json:"seq"`
	}
	if json.Unmarshal(line, &place) != nil || place.exportLabels != x.labels {
		return false
	}
	x.last = place.ID
	if x.labels.Agent != "" {
		x.last = place.Seq
	}
	return x.last > 0
}

// startAfter is the place to begin after: the last one in the file, or the caller's.
func (x *export) startAfter(after int64) (int64, error) {
	if x.last > 0 && after > 0 {
		return 0, usagef("%s goes on after %d; leave --after out", x.file.Name(), x.last)
	}
	return max(x.last, after), nil
}

// write adds a line: an object, with the head's members before its own.
func (x *export) write(object any) error {
	head, err := json.Marshal(x.labels)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	x.n++
	head[len(head)-1] = ','
	for _, part := range [][]byte{head, bytes.TrimPrefix(raw, []byte("{")), {'\n'}} {
		if _, err := x.out.Write(part); err != nil {
			return fmt.Errorf("write the export: %w", err)
		}
	}
	return nil
}

// close keeps what was written, also when err ended the export early.
func (x *export) close(err error) error {
	if flush := x.out.Flush(); flush != nil && err == nil {
		err = fmt.Errorf("write the export: %w", flush)
	}
	if x.file == nil {
		return err
	}
	return errors.Join(err, x.file.Sync(), x.file.Close())
}
