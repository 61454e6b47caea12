// watchos: Int64 may not fit an Int of 32 bits
func index(of offset: Int64) -> Int { Int(offset) }
