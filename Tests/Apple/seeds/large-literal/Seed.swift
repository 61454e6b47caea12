// watchos: integer literal '5000000000' overflows when stored into 'Int'
let seededLimit = 5_000_000_000
