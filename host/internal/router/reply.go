package router

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"skep/abi"
)

// reply is what a peer says, member by member: what is of another type than
// expected says nothing, and spoils no other.
type reply map[string]json.RawMessage

// text is a member that is a string.
func (r reply) text(name string) (s string) {
	if json.Unmarshal(r[name], &s) != nil {
		return ""
	}
	return s
}

// detail is why the peer refuses. Frameworks list the faults of a request there.
func (r reply) detail() string {
	raw := r["detail"]
	if bytes.HasPrefix(raw, []byte("[")) || bytes.HasPrefix(raw, []byte("{")) {
		var b bytes.Buffer
		_ = json.Compact(&b, raw) // it was decoded
		return b.String()
	}
	return r.text("detail")
}

// took reports whether the peer says that it has taken a letter of the task.
func (r reply) took(task string) bool {
	if s := string(r["status"]); s != "" && s != "null" {
		return r.text("status") == "success"
	}
	return task != "" && r.text("task_id") == task
}

// read understands what a peer answers to a letter of a task, as this host or the
// reference does.
func read(got abi.FetchResponse, task string) answer {
	var said reply
	isObject := json.Unmarshal([]byte(got.Body), &said) == nil && said != nil
	detail := said.detail()
	reason := fmt.Sprintf("%d %s", got.Status, http.StatusText(got.Status))
	if detail != "" {
		reason += ": " + shown(detail)
	}
	switch s := got.Status; {
	case s == http.StatusOK && said.took(task):
		return answer{kind: taken, runner: said.text("local_runner")}
	case s == http.StatusOK && isObject:
		return answer{reason: "it does not say that it has taken the letter: " + shown(got.Body)}
	case s == http.StatusOK:
		return answer{reason: "it does not answer as a MAIL server does"}
	case s == http.StatusTooManyRequests, s == http.StatusServiceUnavailable:
		return answer{kind: later, reason: reason, wait: retryAfter(got.Headers)}
	case unknown(s, detail, task):
		return answer{kind: unknownTask, reason: reason}
	case s == http.StatusInternalServerError && strings.Contains(detail, "exist") && !strings.Contains(detail, "not exist"):
		return answer{kind: knownTask, reason: reason}
	case s >= 500 && !strings.HasPrefix(detail, "server failed to receive interswarm"):
		return answer{reason: reason}
	}
	return answer{kind: refused, reason: reason}
}

// notRunning is how servers begin to say that they have no such task.
const notRunning = "task is not running"

// unknown reports whether a peer says that it does not have the task, in the words
// of this host or of the reference. Any other 404 may be about an agent.
func unknown(status int, detail, task string) bool {
	if status != http.StatusBadRequest && status != http.StatusNotFound {
		return false
	}
	return detail == notRunning || strings.HasPrefix(detail, notRunning+": ") || detail == "no mail instance found for task with id "+task
}

// maxWait bounds how long a peer may ask to be left alone.
const maxWait = 10 * time.Minute

func retryAfter(headers map[string]string) time.Duration {
	for name, value := range headers {
		if strings.EqualFold(name, "Retry-After") {
			n, err := strconv.Atoi(strings.TrimSpace(value))
			if err == nil && n > 0 {
				return min(time.Duration(n)*time.Second, maxWait)
			}
		}
	}
	return 0
}

// maxShown bounds what is passed on of a peer's words, in bytes.
const maxShown = 500

// shown makes a peer's words fit to be passed on.
func shown(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > maxShown {
		cut := maxShown
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return text
}
