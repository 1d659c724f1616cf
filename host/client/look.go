package client

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// Look lets admins and operators see what is said in another's task for a while.
type Look struct {
	// Token goes with each call about the task.
	Token string `json:"look"`
	// Until is when it is over.
	Until time.Time `json:"until"`
}

// lookHeader carries the token of a look.
const lookHeader = "Skep-Look"

// BeginLook begins a look at a task. The owner reads the reason in the task's log.
func (c *Client) BeginLook(ctx context.Context, of TaskOf, reason string) (Look, error) {
	body, err := json.Marshal(map[string]string{"reason": reason})
	if err != nil {
		return Look{}, err
	}
	var l Look
	_, err = c.do(ctx, call{method: http.MethodPost, path: of.path("/look", nil), body: body}, &l)
	return l, err
}

// Looking returns a client whose calls about one task are about another's, with the token of a look.
// It is closed with the client that it is made of.
func (c *Client) Looking(of TaskOf, token string) *Client {
	looking := &Client{base: c.base, opt: c.opt, http: c.http, of: of, look: token}
	looking.reached.Store(c.reached.Load())
	return looking
}

// addLook gives a call about the task that is looked at its owner and the token.
func (c *Client) addLook(req *http.Request, k call) {
	path, _, _ := strings.Cut(k.path, "?")
	rest, ok := strings.CutPrefix(path, taskPath(c.of.ID))
	if c.look == "" || !ok || rest != "" && rest[0] != '/' {
		return
	}
	query := req.URL.Query()
	if c.of.Instance != "" {
		query.Set("instance", c.of.Instance)
	}
	if c.of.Tenant != "" {
		query.Set("tenant", c.of.Tenant)
	}
	req.URL.RawQuery = query.Encode()
	req.Header.Set(lookHeader, c.look)
}
