package door

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/google/uuid"

	"skep/spec/mail"
)

// hashMark begins the task ids of conversations whose own ids are no task ids.
const hashMark = "~"

// taskID is the local task of a foreign conversation, a new one for an empty id. It
// reaches no other caller's task: the key of a task begins with the caller's instance.
func taskID(conversation string) string {
	switch {
	case conversation == "":
		return uuid.NewString()
	case mail.ValidTaskID(conversation):
		return conversation
	}
	sum := sha256.Sum256([]byte(conversation))
	return hashMark + hex.EncodeToString(sum[:])
}

// requestID is the request_id of a realm's message, the same for a repeat.
func requestID(key string) string { return uuid.NewSHA1(uuid.NameSpaceOID, []byte(key)).String() }
