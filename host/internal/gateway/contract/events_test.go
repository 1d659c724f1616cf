package contract_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// eachEvent hands the data of each event of a stream to a function
// (https://html.spec.whatwg.org/multipage/server-sent-events.html).
func eachEvent(body io.Reader, each func([]byte) error) error {
	var data []byte
	for lines := bufio.NewReader(body); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, bytes.TrimPrefix(rest, []byte(" "))...)
		}
		if len(line) == 0 && len(data) > 0 {
			if err := each(data); err != nil {
				return err
			}
			data = nil
		}
	}
}
