package rest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

// Headers of answers to posts (contract 1.3, decision 6).
const (
	taskHeader   = "X-MAIL-Task-Id"
	finishHeader = "X-MAIL-Finish-Subject"
)

// encode renders a value as one line of JSON. Every value given to it is of our
// own making and encodes.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// reply answers with a value as JSON.
func reply(w http.ResponseWriter, status int, v any) {
	body := encode(v)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// headerText is a task id as a header can carry it: as it is, or
// percent-encoded when it has anything but visible ASCII.
func headerText(id string) string {
	const hex = "0123456789ABCDEF"
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			var b []byte
			for j := range len(id) {
				if c := id[j]; c <= ' ' || c > '~' || c == '%' {
					b = append(b, '%', hex[c>>4], hex[c&15])
				} else {
					b = append(b, c)
				}
			}
			return string(b)
		}
	}
	return id
}
