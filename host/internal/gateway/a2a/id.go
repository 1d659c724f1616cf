package a2a

import (
	"encoding/base64"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
)

// maxID bounds the ids that callers choose, in bytes.
const maxID = 256

// encoded begins task ids that are not the message's id as it is.
const encoded = "~"

// taskID returns the id of the task that a message began: the message's id, encoded if a
// path could not have it. So no table of tasks is needed.
func taskID(message string) a2a.TaskID {
	if plainID(message) {
		return a2a.TaskID(message)
	}
	return a2a.TaskID(encoded + base64.RawURLEncoding.EncodeToString([]byte(message)))
}

// messageID is the inverse of taskID. It returns "" for what taskID never returns.
func messageID(task a2a.TaskID) string {
	id := string(task)
	if rest, ok := strings.CutPrefix(id, encoded); ok {
		raw, err := base64.RawURLEncoding.DecodeString(rest)
		if err != nil {
			return ""
		}
		id = string(raw)
	}
	if len(id) > maxID || taskID(id) != task {
		return ""
	}
	return id
}

// plainID reports whether an id is safe as a segment of a path.
func plainID(id string) bool {
	for i := range len(id) {
		c := id[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '-' && c != '_' && c != '.') {
			return false
		}
	}
	return id != ""
}
