package a2a

import (
	"context"

	"skep/host/internal/gateway/state"
)

// pageOfRecords is how many records are read at once.
const pageOfRecords = 100

// eachRecord visits the records of a tenant and kind.
func eachRecord(ctx context.Context, s state.Store, of state.Key, visit func(state.Record)) error {
	for after := (state.Key{}); ; {
		list, err := s.List(ctx, of, after, pageOfRecords)
		if err != nil {
			return err
		}
		for _, r := range list {
			visit(r)
			after = r.Key
		}
		if len(list) < pageOfRecords {
			return nil
		}
	}
}
