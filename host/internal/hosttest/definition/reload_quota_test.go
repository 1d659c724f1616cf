package definition_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"skep/host/client"
	"skep/host/internal/hosttest"
)

// waitingTask waits for a timer, so that it stays open.
const waitingTask = `[["sleep",{"ms":600000}]]`

// openTask begins a task that stays open, or returns why none begins.
func openTask(t *testing.T, s *hosttest.Site, task string) error {
	t.Helper()
	c, err := client.New(client.Options{URL: "http://" + s.Addr(), Token: hosttest.AnnKey, NoWait: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = c.PostAsync(t.Context(), client.Post{Task: task, Body: waitingTask})
	return err
}

// wantOverQuota wants a post to be refused for a tenant's tasks.
func wantOverQuota(t *testing.T, when string, err error, running int) {
	t.Helper()
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusTooManyRequests || !strings.Contains(refused.Detail, fmt.Sprintf(`tenant "acme" has %d task`, running)) {
		t.Errorf("%s: %v, want 429 for %d tasks", when, err, running)
	}
}

// TestReloadQuota: a raised quota holds as soon as the reload is answered, and so does a lower one. A reload that is
// refused, for a fault or a change that takes a restart, changes no quota. All that beside a tenant that posts and posts.
func TestReloadQuota(t *testing.T) {
	t.Parallel()
	file := func(tasks int) string {
		return strings.Replace(hosttest.GrantedSwarm, "[tenants.acme]\n", fmt.Sprintf("[tenants.acme]\ntasks = %d\n", tasks), 1)
	}
	s := hosttest.NewSite(t, file(1))
	op := s.As(hosttest.OperatorKey)
	stop := make(chan struct{})
	var flood sync.WaitGroup
	flood.Go(func() {
		for ada := s.As(hosttest.AdaKey); ; {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := ada.PostMessage(t.Context(), client.Post{Body: "hello"}); err != nil {
				t.Errorf("another tenant: %v", err)
				return
			}
		}
	})
	defer flood.Wait()
	defer close(stop)
	if err := openTask(t, s, "first"); err != nil {
		t.Fatal(err)
	}
	wantOverQuota(t, "at the quota", openTask(t, s, "second"), 1)
	for name, refused := range map[string]string{"a fault": file(2) + "[agents.x]\n", "a restart": file(2) + "[server]\ndebug = true\n", "a weight": strings.Replace(file(2), "tasks = 2", "tasks = 2\nweight = 2", 1)} {
		s.Write(refused)
		if _, err := op.Reload(t.Context()); err == nil {
			t.Errorf("%s: the file is in force", name)
		}
		wantOverQuota(t, "after "+name, openTask(t, s, "second"), 1)
	}
	s.Write(file(2))
	changes, err := op.Reload(t.Context())
	if err != nil || len(changes) != 1 || changes[0].Name != "tenants.acme.tasks" || !changes[0].Widened || changes[0].Restart {
		t.Fatalf("the higher quota: %+v, %v", changes, err)
	}
	if err := openTask(t, s, "second"); err != nil {
		t.Errorf("within the higher quota: %v", err)
	}
	if left := quotaLeft(t, op, "tasks"); left != 0 {
		t.Errorf("%d tasks are left, want none of two", left)
	}
	s.Write(file(1))
	if _, err := op.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantOverQuota(t, "beyond the lower quota", openTask(t, s, "third"), 2)
}

// quotaLeft is what acme has left of a quota.
func quotaLeft(t *testing.T, op *client.Client, quota string) int64 {
	t.Helper()
	report, err := op.Usage(t.Context(), client.UsageQuery{Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range report.Quota {
		if q.Name == quota && q.Left != nil {
			return *q.Left
		}
	}
	t.Fatalf("no %s in %+v", quota, report.Quota)
	return 0
}
