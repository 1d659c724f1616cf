package state

import "context"

// listPage is how many records are read at once.
const listPage = 100

// Each shows the records below a key, as [Store].List has them, until show fails.
func Each(ctx context.Context, s Store, of Key, show func(Record) error) error {
	for after := (Key{}); ; {
		page, err := s.List(ctx, of, after, listPage)
		if err != nil {
			return err
		}
		for _, r := range page {
			if err := show(r); err != nil {
				return err
			}
			after = r.Key
		}
		if len(page) < listPage {
			return nil
		}
	}
}
