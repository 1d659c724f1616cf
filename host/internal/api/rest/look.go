package rest

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"skep/host/internal/api/audit"
	"skep/host/internal/api/auth"
	"skep/host/internal/swarm"
)

// Looks says whether operators, and admins in their tenant, see what is said in tasks of others.
// Nothing is kept of a look: each host that shares the store checks its token.
type Looks struct {
	key  []byte
	free bool
}

// NewLooks returns looks whose tokens are sealed with the store's secret. If free, nobody needs one.
func NewLooks(secret []byte, free bool) *Looks {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("skep look"))
	return &Looks{mac.Sum(nil), free}
}

// lookPath is the path of the route that begins a look.
const lookPath = skepPrefix + "tasks/{task_id}/look"

// lookHeader carries the token of a look.
const lookHeader = "Skep-Look"

// lookLife is how long a look lasts. maxReason bounds its reason in bytes: an entry of the audit log
// has all of it.
const (
	lookLife  = 30 * time.Minute
	maxReason = 400
)

// seal returns the token with which a principal reads one task until a time. The task is the one that
// was created then: another one may get its name.
func (l *Looks) seal(who auth.Principal, key swarm.TaskKey, created, until time.Time) string {
	mac := hmac.New(sha256.New, l.key)
	fmt.Fprintf(mac, "%q %q %q %q %q %q %q %d %d", who.Tenant, who.Role, who.ID, key.Tenant, key.Swarm, key.Instance, key.Task, created.UnixNano(), until.Unix())
	return strconv.FormatInt(until.Unix(), 10) + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// opens reports whether a token lets a principal read a task now.
func (l *Looks) opens(token string, who auth.Principal, t swarm.Task, now time.Time) bool {
	until := lookEnd(token)
	return now.Before(until) && hmac.Equal([]byte(token), []byte(l.seal(who, t.Key, t.Created, until)))
}

// lookEnd returns when a look is over.
func lookEnd(token string) time.Time {
	end, _, _ := strings.Cut(token, ".")
	seconds, _ := strconv.ParseInt(end, 10, 64) // what is no number is over
	return time.Unix(seconds, 0)
}

// contextUntil returns the request's context, which ends with errLookOver at a time, zero for never.
func (c *call) contextUntil(until time.Time) (context.Context, context.CancelFunc) {
	if until.IsZero() {
		return c.ctx(), func() {}
	}
	return context.WithTimeoutCause(c.ctx(), until.Sub(c.h.opt.Now()), errLookOver)
}

// errLookOver ends a stream.
var errLookOver = errors.New("the look is over")

// deniedContent is a refusal of what is said in a task, by no fault of the caller's role.
func deniedContent(detail, reason string) *fault {
	f := forbidden(detail)
	f.reason = reason
	return f
}

// errNoLook refuses content where the host's file allows none.
func errNoLook() *fault {
	return deniedContent(`nobody but the owner sees what is said in a task of this host: [console] look is "never"; set it to "reason" in the host's file and start the host again`, "asked for content")
}

// checkContent reports whether the caller sees what is said in another's task. Without a token it is
// the shape alone.
func (c *call) checkContent(t swarm.Task) (bool, error) {
	looks, token := c.h.opt.Looks, c.r.Header.Get(lookHeader)
	switch {
	case token == "":
		return looks != nil && looks.free, nil
	case looks == nil:
		return false, errNoLook()
	case !looks.opens(token, c.w.who, t, c.h.opt.Now()):
		return false, deniedContent("the look is over, or of another task or caller; begin a new one", "look at "+targetOf(t.Key))
	}
	return true, nil
}

// contentKey returns the key of the task in the path for a route that shows what is said: the
// caller's own, or another's that he may look at until a time, zero for ever.
func (c *call) contentKey() (key swarm.TaskKey, until time.Time, err error) {
	key, own, err := c.visibleTask()
	if err != nil || own {
		return key, until, err
	}
	snap, err := c.readTask(key)
	if err != nil {
		return key, until, err
	}
	shown, err := c.checkContent(snap.Task)
	switch {
	case err != nil:
		return key, until, err
	case !shown && c.h.opt.Looks == nil:
		return key, until, errNoLook()
	case !shown:
		return key, until, deniedContent("what is said in a task of others takes a look: POST …/look with a reason, or skep look", "asked for content")
	}
	if token := c.r.Header.Get(lookHeader); token != "" {
		until = lookEnd(token)
	}
	return key, until, nil
}

// readReason reads why the caller looks.
func (c *call) readReason() (reason string, err error) {
	o, err := c.bodyObject()
	if err == nil {
		err = o.readTexts(textField{"reason", &reason})
	}
	reason = strings.TrimSpace(reason)
	switch {
	case err != nil:
		return "", err
	case reason == "":
		return "", badRequest("reason is required: why you look at this task; its owner reads it")
	case len(reason) > maxReason:
		return "", badRequest("reason has %d bytes, at most %d", len(reason), maxReason)
	case !printable(reason):
		return "", badRequest("reason must consist of printable characters")
	}
	return reason, nil
}

func targetOf(key swarm.TaskKey) string {
	return key.Tenant + "/" + truncate(key.Instance) + "/" + truncate(key.Task)
}

// lookAtTask is POST /skep/v1/tasks/{id}/look. The owner's log has it before the caller gets a token.
func (c *call) lookAtTask() error {
	reason, err := c.readReason()
	if err != nil {
		return err
	}
	key, own, err := c.visibleTask()
	if err == nil && own {
		return newFault(http.StatusConflict, "the task is yours: you see all of it")
	}
	if err == nil && c.h.opt.Looks == nil {
		err = errNoLook()
	}
	until := c.h.opt.Now().Add(lookLife).Truncate(time.Second)
	var created time.Time
	if err == nil {
		created, err = c.h.tasks.RecordLook(c.ctx(), key, c.canceller(false), reason, until)
	}
	if err := c.auditLook(key, reason, err); err != nil {
		return err
	}
	reply(c.w, http.StatusOK, struct {
		Tenant   string `json:"tenant"`
		Instance string `json:"instance"`
		Task     string `json:"task_id"`
		Look     string `json:"look"`
		Until    string `json:"until"`
	}{key.Tenant, key.Instance, key.Task, c.h.opt.Looks.seal(c.w.who, key, created, until), formatTime(until)})
	return nil
}

// auditLook records a look with its reason. The host that has the task records it.
func (c *call) auditLook(key swarm.TaskKey, reason string, err error) error {
	if isElsewhere(err) {
		return err
	}
	if err != nil {
		return c.auditAct("task.look", targetOf(key), err)
	}
	e := auditEntry(c.w, c.r)
	e.Act, e.Target, e.Outcome, e.Reason = "task.look", key.Tenant+"/"+key.Instance+"/"+key.Task, audit.Done, reason // the task is there: its names have limits
	return c.h.opt.Audit.Record(e)
}
