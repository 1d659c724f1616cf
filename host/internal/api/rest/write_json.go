package rest

import (
	"bytes"
	"net/http"
	"time"

	"skep/host/internal/swarm"
)

// eachTask writes an answer with one part per task of the caller, newest first,
// while reading the tasks. The separator is empty for the first.
func (c *call) eachTask(open string, one func(separator string, t swarm.Task) error, end func() string) error {
	page, err := c.h.tasks.Tasks(c.ctx(), c.instanceKey(), time.Time{}, taskPage)
	if err != nil {
		return err
	}
	return c.writeJSON(func() error {
		err := c.writeParts([]byte(open))
		separator := ""
		for len(page) > 0 && err == nil {
			for _, t := range page {
				if err := one(separator, t); err != nil {
					return err
				}
				separator = ","
			}
			if len(page) < taskPage {
				break
			}
			page, err = c.h.tasks.Tasks(c.ctx(), c.instanceKey(), page[len(page)-1].Created, taskPage)
		}
		if err != nil {
			return err
		}
		return c.writeParts([]byte(end()))
	})
}

// writeJSON answers with JSON that is written piece by piece. An error aborts the
// connection.
func (c *call) writeJSON(write func() error) error {
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method == http.MethodHead {
		return nil
	}
	if err := write(); err != nil {
		c.abort(err)
	}
	return nil
}

func (c *call) writeParts(parts ...[]byte) error {
	_, err := c.w.Write(bytes.Join(parts, nil))
	return err
}
