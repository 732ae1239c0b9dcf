"""Places and slots: errors per cell, caps, users in many cells, scaling laws, few users, speed."""
