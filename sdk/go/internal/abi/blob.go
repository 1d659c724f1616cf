package abi

// MaxBlob bounds one blob, in bytes.
const MaxBlob = 3_000_000

// BlobPutRequest is the request of op blob.put.
type BlobPutRequest struct {
	Data []byte `json:"data"`
}

// BlobPutResponse is the answer of op blob.put.
type BlobPutResponse struct {
	SHA256 string `json:"sha256"`
}

// BlobGetRequest is the request of op blob.get.
type BlobGetRequest struct {
	SHA256 string `json:"sha256"`
}

// BlobGetResponse is the answer of op blob.get.
type BlobGetResponse struct {
	Data []byte `json:"data"`
}
