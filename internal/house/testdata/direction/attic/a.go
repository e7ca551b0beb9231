package attic
