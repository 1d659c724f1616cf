package door

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"skep/host/internal/gateway"
	"skep/host/internal/swarm"
)

// maxParts bounds the blobs that one answer names.
const maxParts = 64

// blobURI is how an agent names a blob in its answer: blob:SHA256, and then the media type
// and the name of the part, as blob:SHA256?type=image/png&name=plot.png.
var blobURI = regexp.MustCompile(`\bblob:([0-9a-f]{64})(?:\?([A-Za-z0-9%&=+._/~;-]*))?`)

// partsOf are the blobs that an answer names, in order.
func partsOf(body string) (list []gateway.PartRef) {
	if !strings.Contains(body, "blob:") { // the expression takes 200 times as long
		return nil
	}
	seen := map[swarm.BlobID]bool{}
	for _, m := range blobURI.FindAllStringSubmatch(body, maxParts) {
		id, ok := swarm.ParseBlobID(m[1])
		if !ok || seen[id] {
			continue
		}
		seen[id] = true
		ref := gateway.PartRef{Blob: id, Type: "application/octet-stream"}
		if q, err := url.ParseQuery(m[2]); err == nil {
			ref.Name = q.Get("name")
			if t := q.Get("type"); t != "" {
				ref.Type = t
			}
		}
		list = append(list, ref)
	}
	return list
}

// Blob is [gateway.Runtime]'s. It reads what the answer names of the task's own: the name of
// another task's blob, which an agent repeats, opens nothing.
func (d *Door) Blob(ctx context.Context, x gateway.Exchange, ref gateway.PartRef) ([]byte, error) {
	a, _, err := d.Look(ctx, x)
	if err != nil {
		return nil, err
	}
	for _, p := range a.Parts {
		if p.Blob == ref.Blob {
			data, err := d.opt.Swarm.TaskBlob(ctx, x.Task, ref.Blob)
			if err != nil {
				err = fmt.Errorf("read the blob %s: %w", ref.Blob, err)
			}
			return data, foreignError(ctx, err)
		}
	}
	return nil, unknown("the answer names no blob %s", ref.Blob)
}
