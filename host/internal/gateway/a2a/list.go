package a2a

import (
	"cmp"
	"context"
	"fmt"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"skep/host/internal/gateway"
)

// Limits of a list.
const (
	maxPage     = 100
	defaultPage = 50
	// maxScan bounds the exchanges that one request looks at: each is read from its task.
	maxScan = 2 * maxPage
)

// ListTasks implements [a2asrv.RequestHandler]. The newest task is first. The page ends
// early, with a token, after maxScan exchanges.
func (h requests) ListTasks(ctx context.Context, req *a2a.ListTasksRequest) (*a2a.ListTasksResponse, error) {
	c, err := h.callOf(ctx, req.Tenant)
	if err != nil {
		return nil, err
	}
	size := cmp.Or(req.PageSize, defaultPage)
	if size < 1 || size > maxPage {
		return nil, invalid(fmt.Sprintf("pageSize must be 1 to %d", maxPage))
	}
	before := ""
	if req.PageToken != "" {
		if before = messageID(a2a.TaskID(req.PageToken)); before == "" {
			return nil, invalid("pageToken is not one of this server's")
		}
	}
	l := lister{requests: h, c: c, req: req, size: size, room: maxBlobs, page: &a2a.ListTasksResponse{Tasks: []*a2a.Task{}}}
	if err := l.scan(ctx, before); err != nil {
		return nil, h.protocolError(err)
	}
	l.page.PageSize = len(l.page.Tasks)
	return l.page, nil
}

// lister collects one page.
type lister struct {
	requests
	c    *call
	req  *a2a.ListTasksRequest
	size int
	// room is how many bytes of blobs the page may still have.
	room int64
	page *a2a.ListTasksResponse
}

// scan looks at exchanges older than before, until the page is full or enough was seen.
// TotalSize counts what was found on the way.
func (l *lister) scan(ctx context.Context, before string) error {
	for seen := 0; seen < maxScan; {
		list, err := l.Runtime.List(ctx, l.c.caller, before, maxPage)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, x := range list {
			task, err := l.matching(ctx, x)
			if err != nil {
				return err
			}
			if task != nil && len(l.page.Tasks) == l.size {
				l.page.TotalSize++
				l.page.NextPageToken = string(taskID(before))
				return nil
			}
			if task != nil {
				l.page.Tasks = append(l.page.Tasks, task)
				l.page.TotalSize++
			}
			before = x.ID
		}
		seen += len(list)
	}
	l.page.NextPageToken = string(taskID(before))
	return nil
}

// matching returns the task of an exchange, or nil when the request does not want it.
func (l *lister) matching(ctx context.Context, x gateway.Exchange) (*a2a.Task, error) {
	if !l.c.owns(x, x.ID) || l.req.ContextID != "" && l.req.ContextID != x.Conversation {
		return nil, nil
	}
	var none int64
	room := &none
	if l.req.IncludeArtifacts {
		room = &l.room
	}
	task, err := l.snapshotWithin(ctx, x, room)
	if err != nil || l.req.Status != "" && task.Status.State != l.req.Status {
		return nil, err
	}
	after := l.req.StatusTimestampAfter
	if after != nil && !after.IsZero() && (task.Status.Timestamp == nil || !task.Status.Timestamp.After(*after)) {
		return nil, nil
	}
	if !l.req.IncludeArtifacts {
		task.Artifacts = nil
	}
	return task, nil
}
