-- A platform's heads below a size, the newest first.
SELECT size, root, at, kid, signature FROM heads WHERE platform_id = $1 AND size < $2 ORDER BY size DESC LIMIT $3
