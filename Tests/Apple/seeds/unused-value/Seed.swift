// ios: warning: initialization of immutable value 'count' was never used
func ignore() { let count = 1 }
