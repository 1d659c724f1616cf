package binary

import "math"

// Section numbers of the binary format.
const (
	secCustom = iota
	secType
	secImport
	secFunction
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElement
	secCode
	secData
	secDataCount
	sectionCount
)

// sectionOrder is the position of each section in a binary: the count of data
// segments was added last but stands before the code.
var sectionOrder = [sectionCount]int{
	secType: 1, secImport: 2, secFunction: 3, secTable: 4, secMemory: 5, secGlobal: 6,
	secExport: 7, secStart: 8, secElement: 9, secDataCount: 10, secCode: 11, secData: 12,
}

// maxCustom bounds the custom sections that are listed. It is no cap: real
// modules have a dozen.
const maxCustom = 1024

// parser reads a binary into a Module.
type parser struct {
	reader
	caps      Caps
	m         *Module
	dataCount int64 // as declared, or -1
	check     checker
	cost      compileCost
}

// Admit reads a whole binary and refuses it with a *CapError or a *FormatError
// unless everything in it is known, well formed and within caps. Memory and time
// are bounded by the length of the binary and the caps.
func Admit(wasm []byte, caps Caps) (*Module, error) {
	m := &Module{wasm: wasm, caps: caps, Start: -1}
	p := &parser{reader: reader{b: wasm, end: len(wasm)}, caps: caps, m: m, dataCount: -1}
	limit := min(caps.Size, math.MaxInt32) // offsets of the rewriter have 32 bits
	p.cap("size", uint64(len(wasm)), limit, "", 0)
	p.header()
	for last := 0; p.err == nil && p.left() > 0; {
		last = p.section(last)
	}
	p.finish()
	if p.err != nil {
		return nil, p.err
	}
	return m, nil
}

// cap refuses the module when got is above a limit.
func (p *parser) cap(key string, got uint64, limit int64, where string, off int) {
	if bound := uint64(max(limit, 0)); got > bound {
		p.refuse(&CapError{Cap: key, Got: got, Limit: bound, Where: where, Offset: off})
	}
}

func (p *parser) header() {
	if h := p.bytes(8); p.err == nil && string(h) != "\x00asm\x01\x00\x00\x00" {
		p.fail(0, "not a Wasm module of version 1")
	}
}

// section reads one section and returns the position of the last one that was
// not custom.
func (p *parser) section(last int) int {
	off := p.pos
	id := p.byte()
	size := p.u32()
	if p.err == nil && uint64(size) > uint64(p.left()) {
		p.fail(off, "section %d of %d bytes, %d left", id, size, p.left())
	}
	if p.err != nil {
		return last
	}
	if id >= sectionCount {
		p.fail(off, "section %d is not admitted", id)
		return last
	}
	if id != secCustom {
		if sectionOrder[id] <= last {
			p.fail(off, "section %d is repeated or out of order", id)
			return last
		}
		last = sectionOrder[id]
	}
	outer := p.end
	p.end = p.pos + int(size)
	p.m.sections[id] = span{p.pos, p.end}
	p.content(id)
	if p.err == nil && p.pos != p.end {
		p.fail(p.pos, "section %d has %d bytes too many", id, p.left())
	}
	p.end = outer
	return last
}

func (p *parser) content(id byte) {
	switch id {
	case secCustom:
		p.customSection()
	case secType:
		p.typeSection()
	case secImport:
		p.importSection()
	case secFunction:
		p.functionSection()
	case secTable:
		p.tableSection()
	case secMemory:
		p.memorySection()
	case secGlobal:
		p.globalSection()
	case secExport:
		p.exportSection()
	case secStart:
		p.startSection()
	case secElement:
		p.elementSection()
	case secDataCount:
		p.dataCount = int64(p.u32())
	case secCode:
		p.codeSection()
	case secData:
		p.dataSection()
	}
}

// finish checks counts that need the whole binary.
func (p *parser) finish() {
	m := p.m
	if p.err != nil {
		return
	}
	if len(m.bodies) != len(m.Functions) {
		p.fail(p.pos, "%d functions declared, %d defined", len(m.Functions), len(m.bodies))
	}
	if p.dataCount >= 0 && p.dataCount != int64(len(m.datas)) {
		p.fail(p.pos, "%d data segments declared, %d defined", p.dataCount, len(m.datas))
	}
}
