package subprocess

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strconv"
)

// descendants lists what this process has started, and that has started, and so
// on; those that have ended and were not waited for are not among them.
func descendants() []int {
	children := map[int][]int{}
	for _, pid := range processes() {
		if parent, alive := parentOf(pid); alive {
			children[parent] = append(children[parent], pid)
		}
	}
	all := append([]int{}, children[os.Getpid()]...)
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// noticed is descendants at a price that does not grow with what else runs on the
// machine. It may miss one that comes or goes meanwhile, so what is to be killed is
// not looked for by it.
func noticed() []int {
	own := os.Getpid()
	if _, err := os.Stat("/proc/self/task/" + strconv.Itoa(own) + "/children"); err != nil {
		return descendants() // the kernel keeps no such list
	}
	all, seen := childrenOf(own), map[int]bool{}
	for i := 0; i < len(all); i++ {
		if !seen[all[i]] {
			seen[all[i]] = true
			all = append(all, childrenOf(all[i])...)
		}
	}
	return slices.Collect(maps.Keys(seen))
}

// childrenOf lists what the threads of a process have started, those that have ended
// and were not waited for included.
func childrenOf(pid int) (pids []int) {
	threads, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return nil
	}
	for _, thread := range threads {
		raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + thread.Name() + "/children")
		if err != nil {
			continue
		}
		for _, field := range bytes.Fields(raw) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// processes lists the processes there are.
func processes() (pids []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }() // it was only read
	names, _ := dir.Readdirnames(-1)   // what could be read counts
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parentOf returns a process's parent; alive is false for one that is gone, or
// that has ended.
func parentOf(pid int) (parent int, alive bool) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	// The name stands in brackets and may hold anything.
	_, rest, _ := bytes.Cut(raw[bytes.LastIndexByte(raw, ')')+1:], []byte(" "))
	fields := bytes.Fields(rest)
	if len(fields) < 2 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return 0, false
	}
	parent, err = strconv.Atoi(string(fields[1]))
	return parent, err == nil
}

// taken is the memory that processes have to themselves, in bytes, and how many
// threads they have together. Pages of files do not count: others use them too.
func taken(pids []int) (memory int64, threads int) {
	for _, pid := range pids {
		raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		if err != nil {
			continue
		}
		ended := false
		for line := range bytes.Lines(raw) {
			name, value, _ := bytes.Cut(line, []byte(":"))
			ended = ended || string(name) == "State" && bytes.HasPrefix(bytes.TrimSpace(value), []byte("Z"))
			n, err := strconv.ParseInt(string(bytes.TrimSuffix(bytes.TrimSpace(value), []byte(" kB"))), 10, 64)
			switch {
			case err != nil:
			case string(name) == "RssAnon", string(name) == "RssShmem", string(name) == "VmSwap":
				memory += n << 10
			case string(name) == "Threads" && !ended:
				threads += int(n)
			}
		}
	}
	return memory, threads
}

// threads counts what counts for the limit of processes: the threads of this
// user.
func threads() (n uint64) {
	own := os.Geteuid()
	for _, pid := range processes() {
		raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		if err != nil {
			continue
		}
		mine, count := false, uint64(0)
		for line := range bytes.Lines(raw) {
			name, value, _ := bytes.Cut(line, []byte(":"))
			fields := bytes.Fields(value)
			switch {
			case len(fields) == 0:
			case string(name) == "Uid":
				mine = string(fields[0]) == strconv.Itoa(own)
			case string(name) == "Threads":
				count, _ = strconv.ParseUint(string(fields[0]), 10, 32) // 0 where it is no number
			}
		}
		if mine {
			n += count
		}
	}
	return n
}
