-- Makes room for the lines as they are now.
DELETE FROM invoice_lines WHERE platform_id = $1 AND invoice_id = $2
