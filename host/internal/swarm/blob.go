package swarm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"skep/abi"
)

// BlobID is the sha256 of a blob's bytes, which is its address in its tenant.
type BlobID [sha256.Size]byte

// String returns 64 hexadecimal digits in lower case.
func (id BlobID) String() string { return hex.EncodeToString(id[:]) }

// ParseBlobID reads what String wrote, and nothing else.
func ParseBlobID(text string) (id BlobID, ok bool) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(id) {
		return BlobID{}, false
	}
	copy(id[:], raw)
	return id, id.String() == text
}

// Blob is one that a [Step] puts. The task of the step has it from then on, also
// where the tenant had it before.
type Blob struct {
	ID   BlobID
	Data []byte
}

// blobs are what a turn has put and not committed, in the order in which it came.
type blobs struct {
	list  []Blob
	bytes int64
}

func (b *blobs) find(id BlobID) ([]byte, bool) {
	for _, has := range b.list {
		if has.ID == id {
			return has.Data, true
		}
	}
	return nil, false
}

// add returns both, and leaves b as it is.
func (b blobs) add(id BlobID, data []byte) blobs {
	return blobs{append(b.list[:len(b.list):len(b.list)], Blob{id, data}), b.bytes + int64(len(data))}
}

// PutBlob stages a blob, whose bytes are the turn's own from now on. A refusal is
// LIMIT with what would be exceeded.
func (t *Turn) PutBlob(data []byte) (BlobID, *abi.Error) {
	id := BlobID(sha256.Sum256(data))
	if _, put := t.blobs.find(id); put {
		return id, nil
	}
	more := t.blobs.add(id, data)
	switch {
	case t.again != nil: // it was decided then
	case len(more.list) > abi.MaxBlobs:
		return id, abi.Errorf(abi.CodeLimit, abi.OpBlobPut, "blobs", "a turn may put %d blobs", abi.MaxBlobs)
	case more.bytes > abi.MaxBlobBytes:
		return id, abi.Errorf(abi.CodeLimit, abi.OpBlobPut, "bytes", "the blobs of the turn would have %d bytes, at most %d", more.bytes, abi.MaxBlobBytes)
	default:
		if fault := t.mayKeepBytes(abi.OpBlobPut, more.bytes); fault != nil {
			return id, fault
		}
	}
	t.blobs = more
	return id, nil
}

// Blob returns what the turn has put, else what the tenant has. It answers
// [ErrNotFound] for neither.
func (t *Turn) Blob(ctx context.Context, id BlobID) ([]byte, error) {
	if data, put := t.blobs.find(id); put {
		return data, nil
	}
	data, err := t.rt.store.Blob(ctx, t.task.key.Tenant, id)
	if err == nil && BlobID(sha256.Sum256(data)) != id {
		return nil, errors.New("a blob is not what its address says")
	}
	return data, err
}
