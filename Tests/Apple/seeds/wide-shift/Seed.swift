// watchos: a shift by 40 leaves an Int of 32 bits
let seededShift = 1 << 40
