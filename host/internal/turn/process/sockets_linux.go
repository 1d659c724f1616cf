package process

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Of linux/unix_diag.h.
const (
	sockDiagByFamily = 20
	diagShowPeer     = 0x04
	diagShowQueue    = 0x10
	diagShowMemory   = 0x20
	diagPeer         = 2 // attributes
	diagQueue        = 4
	diagMemory       = 5
	diagHeader       = 16 // bytes before the attributes
	stateListen      = 10
)

// maxQueuedDatagrams is the kernel's default of messages that wait at one socket, and one
// more. See max_dgram_qlen in unix(7).
const maxQueuedDatagrams = 11

// unixSocket is a Unix socket as the kernel describes it; sizes in bytes.
type unixSocket struct {
	kind, state uint8
	inode       uint32
	peer        uint32 // 0 for none
	queue       int64  // bytes that wait, or connections that are not accepted
	sent, most  int64  // memory of what it has sent and nobody has read, and its limit
}

// memory is an upper bound of the kernel's memory behind a socket, without what its peers
// are charged for: a sender that was closed is not listed any more.
func (s unixSocket) memory() int64 {
	switch {
	case s.state == stateListen:
		return s.queue * s.most
	case s.queue == 0 || s.peer != 0:
		return s.sent
	case s.kind == unix.SOCK_DGRAM:
		return s.sent + maxQueuedDatagrams*s.most
	}
	return s.sent + s.most
}

// socketMemory is the kernel's memory behind the Unix sockets that processes have open.
func socketMemory(pids []int) (memory int64) {
	own := map[uint32]bool{}
	for _, pid := range pids {
		dir := "/proc/" + strconv.Itoa(pid) + "/fd/"
		open, _ := os.ReadDir(dir) // a process that is gone has none
		for _, fd := range open {
			var inode uint32
			link, err := os.Readlink(dir + fd.Name())
			if n, _ := fmt.Sscanf(link, "socket:[%d]", &inode); err == nil && n == 1 {
				own[inode] = true
			}
		}
	}
	if len(own) == 0 {
		return 0
	}
	for _, s := range unixSockets() {
		if own[s.inode] {
			memory += s.memory()
		}
	}
	return memory
}

// unixSockets lists all Unix sockets; none where the kernel cannot. See sock_diag(7).
func unixSockets() (all []unixSocket) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil
	}
	defer func() { _ = unix.Close(fd) }()
	request := binary.NativeEndian.AppendUint32(nil, unix.SizeofNlMsghdr+24)
	request = binary.NativeEndian.AppendUint16(request, sockDiagByFamily)
	request = binary.NativeEndian.AppendUint16(request, unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	request = append(request, 0, 0, 0, 0, 0, 0, 0, 0, unix.AF_UNIX, 0, 0, 0)
	for _, word := range []uint32{^uint32(0), 0, diagShowPeer | diagShowQueue | diagShowMemory, 0, 0} {
		request = binary.NativeEndian.AppendUint32(request, word)
	}
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil
	}
	buffer := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if err != nil {
			return all
		}
		var done bool
		if all, done = appendSockets(all, buffer[:n]); done {
			return all
		}
	}
}

// appendSockets reads one datagram of a list; done is set with the last one.
func appendSockets(all []unixSocket, raw []byte) (_ []unixSocket, done bool) {
	for len(raw) >= unix.SizeofNlMsghdr {
		size, kind := int(binary.NativeEndian.Uint32(raw)), binary.NativeEndian.Uint16(raw[4:])
		if kind != sockDiagByFamily || size > len(raw) || size < unix.SizeofNlMsghdr+diagHeader {
			return all, true // the end, or an error
		}
		all = append(all, parseSocket(raw[unix.SizeofNlMsghdr:size]))
		raw = raw[min(len(raw), (size+3)&^3):]
	}
	return all, false
}

// parseSocket reads a unix_diag_msg and its attributes.
func parseSocket(raw []byte) unixSocket {
	s := unixSocket{kind: raw[1], state: raw[2], inode: binary.NativeEndian.Uint32(raw[4:])}
	for raw = raw[diagHeader:]; len(raw) >= 4; {
		size, kind := int(binary.NativeEndian.Uint16(raw)), binary.NativeEndian.Uint16(raw[2:])
		if size < 4 || size > len(raw) {
			return s
		}
		switch value := raw[4:size]; {
		case kind == diagPeer && len(value) >= 4:
			s.peer = binary.NativeEndian.Uint32(value)
		case kind == diagQueue && len(value) >= 4:
			s.queue = int64(binary.NativeEndian.Uint32(value))
		case kind == diagMemory && len(value) >= 16: // struct sk_meminfo
			s.sent, s.most = int64(binary.NativeEndian.Uint32(value[8:])), int64(binary.NativeEndian.Uint32(value[12:]))
		}
		raw = raw[min(len(raw), (size+3)&^3):]
	}
	return s
}
