package skeptest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	skep "skep/sdk/go"
	"skep/sdk/go/internal/abi"
)

// Bounds of the blobs of a turn, as a host has them.
const (
	maxBlobs     = 64
	maxBlobBytes = 16 << 20
)

// PutBlob keeps a blob as if a turn had put it, and returns its address.
func (w *World) PutBlob(data []byte) (sha256 string) {
	id := address(data)
	if w.blobs == nil {
		w.blobs = map[string][]byte{}
	}
	w.blobs[id] = slices.Clone(data)
	return id
}

// Blob is what turns that ended well have put; ok is false when there is none.
func (w *World) Blob(sha256 string) (data []byte, ok bool) {
	data, ok = w.blobs[sha256]
	return data, ok
}

func address(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (h *host) blobPut(req json.RawMessage) (any, error) {
	var ask abi.BlobPutRequest
	if err := strict(req, &ask); err != nil {
		return nil, err
	}
	id, put := address(ask.Data), len(ask.Data)
	for _, data := range h.blobs {
		put += len(data)
	}
	_, again := h.blobs[id]
	switch {
	case ask.Data == nil:
		return nil, because(skep.Invalid, "data", "blob.put: data is missing; it must be bytes as base64 with padding")
	case len(ask.Data) > skep.MaxBlob:
		return nil, because(skep.Limit, "size", "a blob of %d bytes, at most %d; put it in parts", len(ask.Data), skep.MaxBlob)
	case again:
	case len(h.blobs) >= maxBlobs:
		return nil, because(skep.Limit, "blobs", "a turn may put %d blobs", maxBlobs)
	case put > maxBlobBytes:
		return nil, because(skep.Limit, "bytes", "the blobs of the turn would have %d bytes, at most %d", put, maxBlobBytes)
	default:
		h.blobs[id] = ask.Data
	}
	return abi.BlobPutResponse{SHA256: id}, nil
}

func (h *host) blobGet(req json.RawMessage) (any, error) {
	var ask abi.BlobGetRequest
	if err := strict(req, &ask); err != nil {
		return nil, err
	}
	if raw, err := hex.DecodeString(ask.SHA256); err != nil || len(raw) != sha256.Size || hex.EncodeToString(raw) != ask.SHA256 {
		return nil, because(skep.Invalid, "sha256", "sha256 must be the 64 hexadecimal digits in lower case that blob.put has answered, not %.70q", ask.SHA256)
	}
	data, ok := h.blobs[ask.SHA256]
	if !ok {
		data, ok = h.world.blobs[ask.SHA256]
	}
	if !ok {
		return nil, because(skep.NotFound, "sha256", "there is no blob %s", ask.SHA256)
	}
	return abi.BlobGetResponse{Data: slices.Clone(data)}, nil
}
