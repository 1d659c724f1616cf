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

// replyBody is the body of an HTTP reply by member. A member of an unexpected type counts
// as missing.
type replyBody map[string]json.RawMessage

// text returns a member that is a string, or "".
func (r replyBody) text(name string) (s string) {
	if json.Unmarshal(r[name], &s) != nil {
		return ""
	}
	return s
}

// detail returns why the peer refuses. Some frameworks put a list of faults
// there.
func (r replyBody) detail() string {
	raw := r["detail"]
	if bytes.HasPrefix(raw, []byte("[")) || bytes.HasPrefix(raw, []byte("{")) {
		var b bytes.Buffer
		_ = json.Compact(&b, raw) // it was decoded
		return b.String()
	}
	return r.text("detail")
}

// accepts reports whether the peer has accepted a message of the task.
func (r replyBody) accepts(task string) bool {
	if s := string(r["status"]); s != "" && s != "null" {
		return r.text("status") == "success"
	}
	return task != "" && r.text("task_id") == task
}

// readReply interprets the HTTP reply to a message of a task, by this host or by
// the reference.
func readReply(got abi.FetchResponse, task string) reply {
	var said replyBody
	isObject := json.Unmarshal([]byte(got.Body), &said) == nil && said != nil
	detail := said.detail()
	reason := fmt.Sprintf("%d %s", got.Status, http.StatusText(got.Status))
	if detail != "" {
		reason += ": " + truncate(detail)
	}
	switch s := got.Status; {
	case s == http.StatusOK && said.accepts(task):
		return reply{verdict: accepted, runner: said.text("local_runner")}
	case s == http.StatusOK && isObject:
		return reply{reason: "it does not say that it has taken the letter: " + truncate(got.Body)}
	case s == http.StatusOK:
		return reply{reason: "it does not answer as a MAIL server does"}
	case s == http.StatusTooManyRequests, s == http.StatusServiceUnavailable:
		return reply{verdict: retryLater, reason: reason, wait: retryAfter(got.Headers)}
	case isUnknownTask(s, detail, task):
		return reply{verdict: unknownTask, reason: reason}
	case s == http.StatusInternalServerError && strings.Contains(detail, "exist") && !strings.Contains(detail, "not exist"):
		return reply{verdict: knownTask, reason: reason}
	case s >= 500 && !strings.HasPrefix(detail, "server failed to receive interswarm"):
		return reply{reason: reason}
	}
	return reply{verdict: refused, reason: reason}
}

// notRunning begins the error text for an unknown task.
const notRunning = "task is not running"

// isUnknownTask reports whether the peer does not have the task, by the texts of
// this host and of the reference. Another 404 may be about an agent. The reference
// answers 500 for a task that it has refused since it restarted.
func isUnknownTask(status int, detail, task string) bool {
	switch status {
	case http.StatusInternalServerError:
		return strings.HasPrefix(detail, "server failed to receive interswarm") && strings.Contains(detail, "'"+task+"' does not exist")
	case http.StatusBadRequest, http.StatusNotFound:
	default:
		return false
	}
	return detail == notRunning || strings.HasPrefix(detail, notRunning+": ") || detail == "no mail instance found for task with id "+task
}

// maxWait bounds the Retry-After of a peer.
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

// maxShown bounds how much of a peer's text is shown, in bytes.
const maxShown = 500

// truncate makes a peer's text valid UTF-8 and bounds it.
func truncate(text string) string {
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
