package rest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// Headers of answers to posts.
const (
	taskHeader   = "X-MAIL-Task-Id"
	finishHeader = "X-MAIL-Finish-Subject"
)

// encode renders a value as one line of JSON. Every value given to it encodes.
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

// encodeHeader percent-encodes a task id for a header: all bytes that are not
// visible ASCII, and the percent sign.
func encodeHeader(id string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(id) {
		if c := id[i]; c <= ' ' || c > '~' || c == '%' {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
