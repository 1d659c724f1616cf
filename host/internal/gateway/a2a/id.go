package a2a

import (
	"github.com/a2aproject/a2a-go/v2/a2a"

	"skep/host/internal/gateway"
)

// maxID bounds the ids that callers choose, in bytes.
const maxID = 256

// taskID returns the id of the task that a message began: the message's id, encoded if a
// path could not have it. So no table of tasks is needed.
func taskID(message string) a2a.TaskID { return a2a.TaskID(gateway.PathOfID(message)) }

// messageID is the inverse of taskID. It returns "" for what taskID never returns.
func messageID(task a2a.TaskID) string {
	id, ok := gateway.IDOfPath(string(task))
	if !ok || len(id) > maxID {
		return ""
	}
	return id
}
