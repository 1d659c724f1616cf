package abi

// Bounds of op blob.put.
const (
	// MaxBlob is of one blob, in bytes: what base64 makes of it fits a request.
	MaxBlob = 3_000_000
	// MaxBlobs and MaxBlobBytes are of those that one turn puts.
	MaxBlobs     = 64
	MaxBlobBytes = 16 << 20
)

// BlobPutRequest is the request of op blob.put.
type BlobPutRequest struct {
	// Data is at most [MaxBlob] bytes, base64 with padding in JSON. It must be
	// there; it may be empty.
	Data []byte `json:"data"`
}

// BlobPutResponse is the answer of op blob.put: the sha256 of the bytes, 64
// hexadecimal digits in lower case.
type BlobPutResponse struct {
	SHA256 string `json:"sha256"`
}

// BlobGetRequest is the request of op blob.get.
type BlobGetRequest struct {
	SHA256 string `json:"sha256"`
}

// BlobGetResponse is the answer of op blob.get.
type BlobGetResponse struct {
	// Data is base64 with padding in JSON.
	Data []byte `json:"data"`
}
